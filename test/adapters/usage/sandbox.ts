// A home, a work tree and a PATH of their own for tests of usage; nothing of the developer's is read.
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { encode } from '../../../src/adapters/usage/claude-sessions.ts'
import type { Clock } from '../../../src/ports.ts'

export const session = '11111111-1111-4111-8111-111111111111'
/** All fixtures begin at this minute, and all that came before belongs to earlier turns. */
export const turnStartMs = Date.parse('2026-02-09T09:00:00Z')

export interface Sandbox {
  readonly root: string
  readonly worktree: string
  readonly home: string
  readonly env: NodeJS.ProcessEnv
  /** Folder of Claude Code for this work tree. */
  readonly claudeFolder: string
  /** Puts a fixture there, with the work tree's path in it. */
  place(fixture: string, path: string): Promise<void>
  write(path: string, text: string | Uint8Array): Promise<void>
  /** A real executable called wt-usage on PATH; `$n` counts its calls from 1. */
  wtUsage(script: string): Promise<void>
  remove(): Promise<void>
}

export async function sandbox(worktreeName = 'my.work_tree'): Promise<Sandbox> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'ralph-usage-')))
  const [worktree, home, bin] = [join(root, worktreeName), join(root, 'home'), join(root, 'bin')]
  for (const folder of [worktree, home, bin]) await mkdir(folder, { recursive: true })
  const write = async (path: string, text: string | Uint8Array): Promise<void> => {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  }
  return {
    root,
    worktree,
    home,
    env: { PATH: `${bin}:/usr/bin:/bin`, HOME: home, TZ: 'UTC' },
    claudeFolder: join(home, '.claude', 'projects', encode(worktree)),
    write,
    async place(fixture, path) {
      const bytes = await readFile(new URL(`../../fixtures/sessions/${fixture}`, import.meta.url), 'latin1')
      await write(
        path,
        Buffer.from(bytes.replaceAll('@CWD@', Buffer.from(worktree).toString('latin1')), 'latin1'),
      )
    },
    async wtUsage(script) {
      const count = join(root, 'calls')
      const head = `#!/bin/sh\necho "$*" >> '${count}'\nn=$(wc -l < '${count}' | tr -d ' ')\n`
      await write(join(bin, 'wt-usage'), head + script)
      await chmod(join(bin, 'wt-usage'), 0o755)
    },
    remove: () => rm(root, { recursive: true, force: true }),
  }
}

/** wt-usage's one line; `input` may be shell arithmetic. */
export function answer(input: string, output = '0'): string {
  const line = `{"period":"custom","input_tokens":%d,"output_tokens":%d,"cache_read_tokens":%d,"cache_creation_tokens":0,"api_tokens":0,"total_tokens":0}`
  return `printf '${line}\\n' "$((${input}))" "$((${output}))" "$((n * 50))"\n`
}

export function clockAt(nowMs: number): Clock {
  return {
    now: () => nowMs,
    monotonic: () => 0,
    stamp: () => '2026-02-09T09:00:00+00:00',
    until: () => Promise.resolve(),
    after: () => () => undefined,
  }
}
