// Whether a cage can be made: asked of the system's own program, which a stand-in on PATH takes the place of.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { probeCage } from '../../../src/adapters/process/cage-probe.ts'

/** Where a program of this name does what the body says, and no other one is. */
function only(name: string, body: string): { folder: string; env: NodeJS.ProcessEnv } {
  const folder = mkdtempSync(join(tmpdir(), 'ralph-probe-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, name)
  writeFileSync(path, `#!/bin/sh\n${body}\n`)
  chmodSync(path, 0o755)
  return { folder, env: { PATH: folder } }
}

test('one is made and thrown away: by bwrap on Linux, by sandbox-exec on macOS', async () => {
  for (const [platform, name, words] of [
    ['linux', 'bwrap', '--unshare-pid --unshare-ipc --cap-drop ALL --unshare-net --ro-bind / /'],
    ['darwin', 'sandbox-exec', '-p (version 1)(allow default) /bin/sh -c exit 0'],
  ] as const) {
    const { folder, env } = only(name, 'echo "$*" > "${0%/*}/words"')
    const isStrict = platform === 'linux'
    expect(await probeCage(env, { platform, isStrict })).toEqual({ program: join(folder, name) })
    expect(readFileSync(join(folder, 'words'), 'utf8')).toContain(words)
  }
})

test('not possible: why, in the words of the program, and what to do', async () => {
  const no = 'echo "bwrap: No permissions to create new namespace" >&2; exit 1'
  expect(await probeCage(only('bwrap', no).env, { platform: 'linux' })).toEqual({
    why: 'bubblewrap (bwrap) cannot make one: bwrap: No permissions to create new namespace',
    fix: expect.stringMatching(/user namespaces/i) as string,
  })
  const nested = 'echo "sandbox-exec: sandbox_apply: Operation not permitted" >&2; exit 71'
  expect(await probeCage(only('sandbox-exec', nested).env, { platform: 'darwin' })).toEqual({
    why: 'sandbox-exec cannot make one: sandbox-exec: sandbox_apply: Operation not permitted',
    fix: 'Inside another sandbox there can be none: run ralph outside of it.',
  })
})

test.each([
  ['linux', false, 'bubblewrap (bwrap) is not installed'],
  ['darwin', false, 'sandbox-exec is not installed'],
  ['darwin', true, 'strict is not there on macOS yet'],
  ['win32', false, 'there is none for win32'],
] as const)('nothing to make one with: %s, strict %s', async (platform, isStrict, why) => {
  const { env } = only('other', 'exit 0')
  expect(await probeCage(env, { platform, isStrict })).toMatchObject({ why })
})
