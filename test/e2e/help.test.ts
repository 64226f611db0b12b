// The pages of help that the build makes: the same words as the program's own, for every command and alias.
import { describe, expect, test } from 'vitest'
import { ralph as ralphInside } from '../ui/fake-app.ts'
import { ralph, scratch } from './harness.ts'
import { onTerminal } from './on-terminal.ts'

describe('the pages of help', () => {
  test('--help of the program, of every command and of an alias says what `ralph help` says', async () => {
    const at = scratch({ commit: false })
    const offered = await ralph(at, ['complete', '--', ''])
    const names = offered.stdout
      .trim()
      .split('\n')
      .map((line) => line.split('\t')[0] ?? '')
    expect(names).toContain('loop')
    for (const words of [[], ['run'], ...names.map((name) => [name])]) {
      const page = await ralph(at, [...words, '--help'])
      expect(page).toMatchObject({ code: 0, stderr: '' })
      expect(page.stdout).toBe((await ralphInside(['help', ...words])).out)
    }
  })

  test.each(['resume', 'up', 'land'])(
    '%s names the page of the options that it shares with loop',
    async (name) => {
      const { stdout } = await ralph(scratch({ commit: false }), [name, '--help'])
      expect(stdout).toMatch(
        /It takes the options of ralph loop, too \(ralph loop --help\), but not\n--[a-z]/,
      )
      expect(stdout.includes('--dry-run')).toBe(name !== 'up')
      expect(stdout).not.toContain('--verify <CMD>')
      expect(stdout.split('\n').length).toBeLessThan(40)
      const offered = await ralph(scratch({ commit: false }), ['complete', '--', name, '--ver'])
      expect(offered.stdout).toContain('--verify')
      const typo = await ralph(scratch({ commit: false }), [name, 'x', '--verfy', 'y'])
      expect([typo.code, typo.stderr]).toEqual([2, expect.stringContaining('Did you mean --verify?')])
    },
  )

  test('loop lists its options in the order in which one decides', async () => {
    const { stdout } = await ralph(scratch({ commit: false }), ['loop', '--help'])
    expect(stdout.match(/^[A-Z][A-Za-z ]*(?=:$)/gm)).toEqual([
      'Arguments',
      'What to run',
      'Agent',
      'Gates',
      'Limits',
      'Sandbox',
      'Work and end',
      'Output',
      'Options',
      'Exit codes',
      'Example',
    ])
  })

  test('a word that is no command opens no file', async () => {
    const words = ['../help/loop', '--help']
    const page = await ralph(scratch({ commit: false }), words)
    expect(page).toMatchObject({ code: 2, stdout: '' })
  })

  test.each([80, 90, 120])(
    'R11: a terminal of %i columns gets whole words in lines that fit',
    async (cols) => {
      const at = scratch({ commit: false })
      const screen = onTerminal(at, ['loop', '--help'], at.repo, cols)
      await screen.exited
      const lines = screen.raw().split('\r\n')
      expect(lines[0]).toContain('Usage: ralph loop')
      // What has no blank to break at stays whole.
      const isOneWord = (line: string): boolean => /^ {30,}\S+$/.test(line)
      const wide = lines.filter((line) => line.length > Math.min(cols, 100) && !isOneWord(line))
      expect(wide).toEqual([])
    },
  )
})
