// Start-up: `ralph --version`, `--help` and `status` beside an empty node, in one run.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { compare, print, run, timed } from './measure.ts'

const program = resolve(import.meta.dirname, '../dist/main.js')
const folder = mkdtempSync(join(tmpdir(), 'ralph-bench-'))
run(folder, 'git', 'init', '-q')
const ralph =
  (...args: string[]) =>
  () =>
    timed(process.execPath, [program, ...args], { cwd: folder })

print(
  'start-up (goal: at most 2x an empty node for --version and --help)',
  compare(
    [
      { name: 'node -e 0', sample: () => timed(process.execPath, ['-e', '0']) },
      { name: 'ralph --version', sample: ralph('--version') },
      { name: 'ralph --help', sample: ralph('--help') },
      { name: 'ralph loop --help', sample: ralph('loop', '--help') },
      { name: 'ralph status (no loop yet)', sample: ralph('status', '--json') },
    ],
    Number(process.argv[2] ?? 15),
  ),
)
rmSync(folder, { recursive: true })
