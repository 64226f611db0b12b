// The files of the work tree that say what a gate does, as far as its words tell, and a hash of each.
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { readJson } from '../core/json.ts'
import { isTest } from '../core/resolution.ts'

/** By a name for people, ``check.sh (gate `./check.sh`)``; what is not there has no entry. */
export function gateFiles(worktree: string, gates: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {}
  for (const gate of gates) {
    for (const [what, content] of runBy(worktree, gate, 2))
      found[`${what} (gate \`${gate}\`)`] = createHash('sha256').update(content).digest('hex')
  }
  return found
}

type Run = readonly [what: string, content: Uint8Array | string]

/** A script may call another script: as far down as `depth`. */
function runBy(worktree: string, command: string, depth: number): Run[] {
  const words = command.split(/[\s;&|<>()"'`$={}]+/).filter((word) => word !== '')
  const named = command
    .split(/&&|\|\||[;&|()`\n]/)
    .flatMap((part) => programs(part.split(/[\s<>"'{}]+/).filter((word) => word !== '')))
    .flatMap((word): Run[] => {
      const path = normalize(word)
      const content = path.startsWith('..') || path.startsWith('/') ? undefined : fileAt(join(worktree, path))
      return content === undefined || isOnlyTest(path, content) ? [] : [[path, content]]
    })
  const recipes = words.flatMap((word, at): Run[] => {
    if (word === 'make' || word === 'gmake') return makefileOf(worktree)
    if (word === 'just') return firstOf(worktree, ['justfile', 'Justfile', '.justfile'])
    return /^(npm|pnpm|yarn|bun)$/.test(word) ? scripts(worktree, words.slice(at + 1), depth) : []
  })
  return [...named, ...recipes]
}

/** Stories write tests, and those are told as tests; a runner that stands among them is no test, nor is a script or a setting. */
function isOnlyTest(path: string, content: Uint8Array): boolean {
  if (!isTest(path) || /\.(?:ba|da|z|k)?sh$/.test(path) || !path.includes('.') || settingFile.test(path))
    return false
  return isTest(path.slice(path.lastIndexOf('/') + 1)) || checking.test(Buffer.from(content).toString())
}

const checking = /\b(?:assert\w*|expect|describe|it)\b/

/** What one command runs and how it is set; not what it looks at: with that every story is busy. */
function programs(words: readonly string[]): string[] {
  const settings = words.flatMap((word, at) => {
    const [, name = word] = /^--(?:config|project|file|makefile)=(.*)/.exec(word) ?? []
    return (name !== word || settingFlag.test(words[at - 1] ?? '')) && settingFile.test(name) ? [name] : []
  })
  const at = words.findIndex((word) => interpreter.test(word))
  const program = words.find((word) => !before.test(word))
  if (at === -1) return [...(program === undefined ? [] : [program]), ...settings]
  const rest = words.slice(at + 1)
  const first = rest.findIndex((word) => !word.startsWith('-'))
  const flags = rest.slice(0, first === -1 ? rest.length : first)
  if (shell.test(words[at] ?? '') && flags.includes('-c')) return programs(rest.slice(flags.length))
  return first === -1 || flags.some((flag) => lookFlag.test(flag))
    ? settings
    : [rest[first] ?? '', ...settings]
}

const before =
  /^(?:\w+=.*|[!-].*|time|exec|env|nice|nohup|command|timeout|npx|if|then|else|while|do|source|\.|\d+[smh]?)$/
const shell = /^(?:.*\/)?(?:ba|da|z|k)?sh$/
const interpreter = /^(?:.*\/)?(?:(?:ba|da|z|k)?sh|node|deno|bun|tsx|ts-node|python[\d.]*|ruby|perl|php)$/
/** It is checked or run as a test, or is no file at all. */
const lookFlag = /^(?:-[celm]|--check|--test|--eval|--lint|--syntax-check)$/
const settingFlag = /^--?(?:c|p|f|config|project|file|makefile)$/
const settingFile = /config|rc(?:\.|$)|makefile|\.(?:mk|toml|ini|cfg)$/i

/** `npm test`, `npm run build`, `yarn lint`: the entry of package.json, with what npm runs before and after it. */
function scripts(worktree: string, words: readonly string[], depth: number): Run[] {
  const name = words.find((word) => !word.startsWith('-') && !/^(run|run-script)$/.test(word))
  const entries = scriptsOf(worktree) ?? {}
  const wanted = name === 't' ? 'test' : name
  if (wanted === undefined || entries[wanted] === undefined || depth === 0) return []
  return [`pre${wanted}`, wanted, `post${wanted}`].flatMap((script) => {
    const body = entries[script]
    if (body === undefined) return []
    return [[`package.json: ${script}`, body] as const, ...runBy(worktree, body, depth - 1)]
  })
}

/** Undefined where there is no package.json that can be read. */
export function scriptsOf(worktree: string): Record<string, string> | undefined {
  const parsed = readJson(fileAt(join(worktree, 'package.json'))?.toString('utf8') ?? '')
  if (typeof parsed !== 'object' || parsed === null) return undefined
  const { scripts: found } = parsed as { scripts?: unknown }
  if (typeof found !== 'object' || found === null) return {}
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

export function makefileOf(worktree: string): Run[] {
  return firstOf(worktree, ['GNUmakefile', 'makefile', 'Makefile'])
}

function firstOf(worktree: string, names: readonly string[]): Run[] {
  for (const name of names) {
    const content = fileAt(join(worktree, name))
    if (content !== undefined) return [[name, content]]
  }
  return []
}

const mostBytes = 10e6

/** Undefined where there is no plain file that can be read: a gate may name anything. */
function fileAt(path: string): Buffer | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats?.isFile() === true && stats.size <= mostBytes ? readFileSync(path) : undefined
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EACCES' || code === 'ENOTDIR' || code === 'ENAMETOOLONG' || code === 'ELOOP')
      return undefined
    throw error
  }
}
