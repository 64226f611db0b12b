// The desktop is told by the program that the system has for it.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { desktopOf, isNoticingTerminal } from '../../src/adapters/process/desktop.ts'
import { goodAgent, ralph, scratch, tasksOf, type Scratch } from './harness.ts'

/** With a `notify-send` that writes down what it gets. */
function withDesktop(body = ''): { at: Scratch; env: NodeJS.ProcessEnv; told: string } {
  const at = scratch({ tasks: tasksOf(1) })
  const bin = join(at.root, 'bin')
  const told = join(at.root, 'told')
  mkdirSync(bin)
  writeFileSync(join(bin, 'notify-send'), `#!/bin/sh\n${body}\nprintf '%s\\n' "$@" >> ${told}\n`)
  chmodSync(join(bin, 'notify-send'), 0o755)
  return { at, told, env: { PATH: `${bin}:${at.env['PATH'] ?? ''}`, DISPLAY: ':99' } }
}

const loop = ['loop', 'demo', '--max-retries', '0', '--agent-command']

describe('--notify', () => {
  test('F23: the end of a loop is shown, done or not; without a terminal only where it was asked for', async () => {
    const { at, env, told } = withDesktop()
    await ralph(at, [...loop, 'echo "<promise>FAILED: a < b</promise>"', '--notify'], { env })
    expect(readFileSync(told, 'utf8')).toMatch(/^--app-name=ralph\n--\nralph: demo stuck\n.*a &lt; b/)
    await ralph(at, ['resume', 'demo', '--agent-command', goodAgent], { env })
    expect(readFileSync(told, 'utf8')).toMatch(/\nralph: demo done\n/)
    const quiet = withDesktop()
    await ralph(quiet.at, [...loop, goodAgent], { env: quiet.env })
    expect(existsSync(quiet.told)).toBe(false)
  })

  test('F23: where it cannot be shown, that is a warning and no failure', async () => {
    const { at, env } = withDesktop('echo "no bus" >&2; exit 3')
    const end = await ralph(at, [...loop, goodAgent, '--notify'], { env })
    expect([end.code, end.stderr]).toEqual([0, expect.stringMatching(/--notify failed: .*no bus/)])
    const other = scratch({ tasks: tasksOf(1) })
    const bare = await ralph(other, [...loop, goodAgent, '--notify'])
    expect([bare.code, bare.stderr]).toEqual([
      0,
      expect.stringContaining('this system has no program for it'),
    ])
  })

  test('F23: nothing of a notice is read as a script or as markup', () => {
    const { env } = withDesktop()
    const notice = { title: '-x"', text: '<b>&' }
    expect(desktopOf(env, 'linux')?.(notice).slice(1)).toEqual([
      '--app-name=ralph',
      '--',
      '-x"',
      '&lt;b&gt;&amp;',
    ])
    expect(desktopOf({ ...env, DISPLAY: '' }, 'linux')).toBeUndefined()
    expect(desktopOf({ PATH: '/nowhere', DISPLAY: ':1' }, 'linux')).toBeUndefined()
    const bin = join(env['PATH']?.split(':')[0] ?? '', 'osascript')
    writeFileSync(bin, '')
    chmodSync(bin, 0o755)
    expect(desktopOf(env, 'darwin')?.(notice).slice(-3)).toEqual(['--', '-x"', '<b>&'])
    expect([isNoticingTerminal({ TERM: 'xterm-kitty' }), isNoticingTerminal({ TERM: 'xterm' })]).toEqual([
      true,
      false,
    ])
  })
})
