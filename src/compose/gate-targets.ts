// The script or target that a gate names, where package.json or the Makefile has none of that name.
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nearest } from '../core/nearest.ts'
import { makefileOf, scriptsOf } from './gate-files.ts'

export interface MissingTarget {
  readonly name: string
  /** "package.json has no script lnit". */
  readonly detail: string
  /** What was most likely meant; absent also where the tool may know the name without its file. */
  readonly near?: string
}

/** Undefined where it is there, where a story may well bring the file, and where only the tool itself could tell. */
export function missingTarget(gate: string, worktree: string): MissingTarget | undefined {
  for (const part of gate.split(/&&|\|\||;/)) {
    const words = part
      .split(/\s+/)
      .filter((word) => word !== '' && !/^(?:-s|--silent|-q|--quiet)$/.test(word))
    const [tool = '', ...rest] = words
    // From here on it is another folder, or a flag says so.
    if (tool === 'cd' || words.some((word) => word.startsWith('-'))) return undefined
    const found = /^(?:npm|pnpm|yarn|bun)$/.test(tool)
      ? missingScript(tool, rest, worktree)
      : /^g?make$/.test(tool)
        ? missingRule(rest, worktree)
        : undefined
    if (found !== undefined) return found
  }
  return undefined
}

function missingScript(
  tool: string,
  [verb = '', next = '']: readonly string[],
  worktree: string,
): MissingTarget | undefined {
  const scripts = scriptsOf(worktree)
  const isRun = /^(?:run|run-script)$/.test(verb)
  const name = isRun ? next : tool === 'npm' && /^(?:t|tst)$/.test(verb) ? 'test' : verb
  if (!/^[A-Za-z][\w:.-]*$/.test(name)) return undefined
  if (scripts === undefined)
    return (isRun || name === 'test') && !hasManifest(worktree)
      ? { name, detail: 'there is no package.json' }
      : undefined
  if (scripts[name] !== undefined) return undefined
  const isFile = existsSync(join(worktree, name)) || existsSync(join(worktree, 'node_modules/.bin', name))
  if (tool !== 'npm' && isFile) return undefined
  const detail = `package.json has no script ${name}`
  const found = (near: string | undefined): MissingTarget => ({
    name,
    detail,
    ...(near !== undefined && { near }),
  })
  if (isRun) return found(nearest(name, Object.keys(scripts), true))
  // npm runs no others by their bare name.
  if (tool === 'npm' && /^(?:test|start|stop)$/.test(name)) return found(undefined)
  if (tool !== 'npm') return found(undefined)
  if (npmCommands.some((command) => command.startsWith(name))) return undefined
  const script = nearest(name, Object.keys(scripts), true)
  const meant =
    nearest(name, npmCommands.slice(0, 1), true) ?? (script === undefined ? undefined : `run ${script}`)
  return { ...found(meant), detail: `npm has no command ${name}` }
}

/** Here or above: they look for it there, too. */
function hasManifest(folder: string): boolean {
  const above = dirname(folder)
  return existsSync(join(folder, 'package.json')) || (above !== folder && hasManifest(above))
}

/** Those that one might put into a gate, or mistype; npm takes the beginning of one for all of it. */
const npmCommands = [
  'test',
  'audit',
  'ci',
  'clean-install',
  'config',
  'doctor',
  'exec',
  'explain',
  'fund',
  'help',
  'install',
  'list',
  'ls',
  'outdated',
  'pack',
  'ping',
  'pkg',
  'prefix',
  'prune',
  'publish',
  'query',
  'rebuild',
  'restart',
  'root',
  'run',
  'sbom',
  'start',
  'stop',
  'update',
  'version',
  'view',
]

function missingRule(targets: readonly string[], worktree: string): MissingTarget | undefined {
  const [[file, content] = ['', '']] = makefileOf(worktree)
  const text = content.toString()
  // What make would put together itself cannot be read off.
  if (file === '' || /^[^\t#]*%[^=]*:|^-?s?include\b|^\.DEFAULT\b|^[^\t#=]*\$[^=]*:/m.test(text))
    return undefined
  const known = [...text.matchAll(/^([^\t#=:\s][^#=:]*):(?!=)/gm)].flatMap(([, names = '']) =>
    names.trim().split(/\s+/),
  )
  const files = readdirSync(worktree)
  const name = targets.find(
    (target) =>
      /^[A-Za-z][\w-]*$/.test(target) &&
      !known.includes(target) &&
      !files.some((each) => each === target || each.startsWith(`${target}.`)),
  )
  if (name === undefined) return undefined
  const near = nearest(name, known, true)
  return { name, detail: `${file} has no target ${name}`, ...(near !== undefined && { near }) }
}
