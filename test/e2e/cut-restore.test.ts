// A `ralph restore` that is killed between the files that it takes away and those that it writes.
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { killRalph, ralph, scratch, tasksOf, type Scratch } from './harness.ts'

/** Story 1 has failed; the user has edited a file that the attempt had changed too, and `restore` was killed when its git wrote files. */
async function cutOff(): Promise<Scratch> {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('list.txt', 'top\nmiddle\nend\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'list')
  at.write('loose.txt', 'of the user\n')
  const agent =
    'echo more >> list.txt; echo agent > new.txt; rm loose.txt; echo "<promise>FAILED: no</promise>"'
  const failing = ['--max-retries', '0', '--agent-command', agent]
  expect((await ralph(at, ['loop', 'demo', ...failing])).code).toBe(3)
  at.write('list.txt', 'TOP of the user\nmiddle\nend\n')
  mkdirSync(join(at.root, 'bin'))
  at.script(
    'bin/git',
    `#!/bin/sh\ncase "$*" in *checkout-index*--ignore-skip-worktree-bits*) ${killRalph}; exit 1;; esac\nPATH="\${PATH#*:}" exec git "$@"\n`,
  )
  const env = { PATH: `${join(at.root, 'bin')}:${at.env['PATH']}` }
  expect((await ralph(at, ['restore', '1', 'demo'], { env })).signal).toBe('SIGKILL')
  expect(existsSync(join(at.repo, 'list.txt'))).toBe(false)
  const said = (await ralph(at, ['status', 'demo'])).stdout.replaceAll(/\s+/g, ' ')
  expect(said).toContain('a ralph restore was killed half-way here, and files may be missing')
  expect(existsSync(join(at.repo, 'list.txt'))).toBe(false)
  return at
}

test.for([
  { again: ['restore', '1', 'demo'] },
  { again: ['finish', 'demo', '--keep'] },
  { again: ['resume', 'demo'] },
])(
  'G25: a restore that was killed half-way is completed by $again, with what the user had edited',
  async ({ again }) => {
    const at = await cutOff()
    const then = await ralph(at, again)
    const said = then.stderr.replaceAll(/\s+/g, ' ')
    expect(said).toContain(
      'Bringing #1 of demo back had been killed half-way; it is completed: list.txt, loose.txt, new.txt',
    )
    expect(said).toContain('git diff-tree -p --binary refs/ralph/demo/restored/1 | git apply -R')
    expect(at.read('list.txt')).toBe('TOP of the user\nmiddle\nend\nmore\n')
    expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain('killed half-way')
    // A resume takes it as the user's own change, and its agent adds to it.
    if (again[0] === 'resume') return
    expect([existsSync(join(at.repo, 'loose.txt')), at.read('new.txt')]).toEqual([false, 'agent\n'])
  },
)

test('G25: a restore that was killed half-way is not completed on another branch: it is said where the files are', async () => {
  const at = await cutOff()
  at.git('switch', '-q', 'main')
  const said = (await ralph(at, ['finish', 'demo', '--keep'])).stderr.replaceAll(/\s+/g, ' ')
  expect(said).toContain('had been killed half-way, and you have switched since')
  expect(at.git('show', 'refs/ralph/demo/restored/1^:list.txt')).toBe('TOP of the user\nmiddle\nend')
})
