// Runs a short command and waits for it, from one small shell per worker: to fork the worker itself takes longer than most git commands.
import { execFileSync, spawn } from 'node:child_process'
import {
  closeSync,
  constants,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isName, quoted } from '../src/core/shell-word.ts'

interface Options {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

interface Shell {
  /** One line of it, to its end: its exit code, and what it wrote to 3 and 4. */
  run(line: string): { code: number; stdout: Buffer; stderr: Buffer }
}

/** Of the worker, not of this module: vitest loads that anew for each file. */
const worker = globalThis as { testShell?: Shell }

/** As `execFileSync(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })`. */
export function runBytes(file: string, args: readonly string[], { cwd, env }: Options): Buffer {
  const set = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]))
  if (!set.every(({ name }) => isName(name)))
    return execFileSync(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const words = [...set.map(({ name, value }) => `${name}=${quoted(value)}`), ...[file, ...args].map(quoted)]
  const { code, stdout, stderr } = (worker.testShell ??= openShell()).run(
    `cd ${quoted(cwd)} 2>&4 && unset PWD OLDPWD && ${words.join(' ')} </dev/null >&3 2>&4 3>&- 4>&-; echo $?\n`,
  )
  if (code === 0) return stdout
  const failed = new Error(`Command failed: ${[file, ...args].join(' ')}\n${stderr.toString('utf8')}`)
  throw Object.assign(failed, { status: code, stdout, stderr: stderr.toString('utf8') })
}

export function run(file: string, args: readonly string[], options: Options): string {
  return runBytes(file, args, options).toString('utf8')
}

function openShell(): Shell {
  const folder = mkdtempSync(join(tmpdir(), 'ralph-shell-'))
  const at = (name: string): string => join(folder, name)
  execFileSync('mkfifo', [at('lines'), at('codes')])
  // To read and write it: it is opened before anybody is at its other end.
  const lines = openSync(at('lines'), constants.O_RDWR)
  const both = openSync(at('codes'), constants.O_RDWR)
  const codes = openSync(at('codes'), constants.O_RDONLY)
  const [out, err] = [at('out'), at('err')].map((file) => openSync(file, 'a+')) as [number, number]
  // Its end of the lines is not the worker's: it ends with the worker.
  const stdin = openSync(at('lines'), constants.O_RDONLY)
  spawn('/bin/sh', [], {
    cwd: '/',
    env: {},
    detached: true,
    stdio: [stdin, both, 'ignore', out, err],
  }).unref()
  closeSync(stdin)
  closeSync(both)
  const said = (name: string, file: number): Buffer => {
    const bytes = readFileSync(at(name))
    if (bytes.length > 0) ftruncateSync(file)
    return bytes
  }
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const some = Buffer.alloc(16)
  return {
    run(line) {
      const bytes = Buffer.from(line)
      for (let done = 0; done < bytes.length;) done += writeSync(lines, bytes, done)
      let code = ''
      while (!code.endsWith('\n')) {
        const read = readSync(codes, some)
        if (read === 0) throw new Error(`the shell of the tests is gone; it was told: ${line}`)
        code += some.toString('latin1', 0, read)
      }
      return { code: Number(code), stdout: said('out', out), stderr: said('err', err) }
    },
  }
}
