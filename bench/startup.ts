// Start-up: what is asked for without a loop, and about one, beside an empty node, in one run.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { compare, print, run, timed } from './measure.ts'

const program = resolve(import.meta.dirname, '../dist/main.js')
const folder = mkdtempSync(join(tmpdir(), 'ralph-bench-'))
const [bare, looped] = [join(folder, 'bare'), join(folder, 'looped')]
for (const repository of [bare, looped]) {
  mkdirSync(join(repository, 'openspec/changes/demo'), { recursive: true })
  run(repository, 'git', 'init', '-q')
}
const story = (n: number): string => `## ${n}. Story\n\n- [ ] ${n}.1 task\n`
writeFileSync(join(looped, 'openspec/changes/demo/tasks.md'), [1, 2, 3, 4, 5].map(story).join('\n'))
run(looped, 'git', 'add', '-A')
run(looped, 'git', '-c', 'user.name=u', '-c', 'user.email=u@localhost', 'commit', '-qm', 'start')
const agent = 'date > work; echo "<promise>COMPLETE</promise>"'
run(looped, process.execPath, program, 'loop', 'demo', '--agent-command', agent, '--on-complete', 'keep')

const node = { name: 'node -e 0', sample: () => timed(process.execPath, ['-e', '0']) }
const ralph = (cwd: string, ...args: string[]): { name: string; sample: () => number } => ({
  name: `ralph ${args.join(' ')}${cwd === bare ? '' : ' (a run of 5 stories)'}`,
  sample: () => timed(process.execPath, [program, ...args], { cwd }),
})
const rounds = Number(process.argv[2] ?? 15)

print(
  'start-up, nothing but words (goal: at most 1.6x)',
  compare(
    [
      node,
      ralph(bare, '--version'),
      ralph(bare, '--help'),
      ralph(bare, 'loop', '--help'),
      ralph(bare, 'status', '--help'),
    ],
    rounds,
  ),
)
print(
  'start-up, a look at the repository (goal: at most 2x for status)',
  compare(
    [
      node,
      { name: 'git rev-parse', sample: () => timed('git', ['rev-parse', '--git-dir'], { cwd: bare }) },
      ralph(bare, 'complete', '--', 'st'),
      ralph(bare, 'status', '--json'),
      ralph(looped, 'status'),
      ralph(looped, 'status', '--json'),
      ralph(looped, 'stop'),
      ralph(looped, 'logs'),
      ralph(looped, 'list'),
    ],
    rounds,
  ),
)
rmSync(folder, { recursive: true })
