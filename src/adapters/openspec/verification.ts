// The commands with which a project checks itself: only those that are really there, whatever its language.
import { join } from 'node:path'
import * as z from 'zod'
import { readJson } from '../../core/json.ts'
import { readIfThere } from '../files/whole.ts'

export async function verificationCommands(folder: string): Promise<readonly string[]> {
  const read = async (name: string): Promise<string | undefined> =>
    (await readIfThere(join(folder, name)))?.toString('utf8')
  const found = await Promise.all([
    nodeCommands(folder, read),
    rustAndGo(read),
    pythonCommands(read),
    makeCommands(read),
  ])
  return found.flat()
}

type Read = (name: string) => Promise<string | undefined>

const scriptNames = ['typecheck', 'type-check', 'lint', 'check', 'test', 'build']

async function nodeCommands(folder: string, read: Read): Promise<string[]> {
  const text = await read('package.json')
  if (text === undefined) return []
  const scripts =
    z.looseObject({ scripts: z.record(z.string(), z.unknown()) }).safeParse(readJson(text)).data?.scripts ??
    {}
  const manager = await packageManager(folder)
  return scriptNames
    .filter((name) => typeof scripts[name] === 'string' && !isPlaceholder(scripts[name]))
    .map((name) => (name === 'test' && manager !== 'bun' ? `${manager} test` : `${manager} run ${name}`))
}

/** What `npm init` writes is no test. */
function isPlaceholder(script: string): boolean {
  return script.includes('no test specified')
}

async function packageManager(folder: string): Promise<string> {
  const locks = { 'pnpm-lock.yaml': 'pnpm', 'yarn.lock': 'yarn', 'bun.lock': 'bun', 'bun.lockb': 'bun' }
  for (const [lock, manager] of Object.entries(locks)) {
    if ((await readIfThere(join(folder, lock))) !== undefined) return manager
  }
  return 'npm'
}

async function rustAndGo(read: Read): Promise<string[]> {
  const commands: string[] = []
  if ((await read('Cargo.toml')) !== undefined) commands.push('cargo test')
  if ((await read('go.mod')) !== undefined) commands.push('go vet ./...', 'go test ./...')
  return commands
}

async function pythonCommands(read: Read): Promise<string[]> {
  const project = (await read('pyproject.toml')) ?? ''
  const hasTable = (name: string): boolean =>
    new RegExp(String.raw`^\s*\[tool\.${name}[.\]]`, 'm').test(project)
  const hasRuff =
    hasTable('ruff') || (await read('ruff.toml')) !== undefined || (await read('.ruff.toml')) !== undefined
  const hasPytest =
    hasTable('pytest') ||
    (await read('pytest.ini')) !== undefined ||
    /^\[pytest\]/m.test((await read('tox.ini')) ?? '') ||
    /^\[tool:pytest\]/m.test((await read('setup.cfg')) ?? '')
  return [...(hasRuff ? ['ruff check .'] : []), ...(hasPytest ? ['pytest'] : [])]
}

async function makeCommands(read: Read): Promise<string[]> {
  const text = (await read('Makefile')) ?? (await read('makefile')) ?? ''
  const hasTarget = (name: string): boolean => new RegExp(`^${name}[ \\t]*:(?!=)`, 'm').test(text)
  return ['lint', 'check', 'test'].filter(hasTarget).map((name) => `make ${name}`)
}
