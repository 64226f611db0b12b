// Overhead per story: a whole run with an agent that does next to nothing, beside a shell loop with plain git.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { commitRepository, compare, print, timed } from './measure.ts'

const program = resolve(import.meta.dirname, '../dist/main.js')
const stories = Number(process.argv[2] ?? 20)
const rounds = Number(process.argv[3] ?? 3)
const agent = 'cat > /dev/null; echo x >> work.txt; echo "<promise>COMPLETE</promise>"'

function repository(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ralph-bench-'))
  mkdirSync(join(folder, 'openspec/changes/demo'), { recursive: true })
  const tasks = Array.from({ length: stories }, (_, n) => `## ${n + 1}. Story\n\n- [ ] ${n + 1}.1 task\n`)
  writeFileSync(join(folder, 'openspec/changes/demo/tasks.md'), tasks.join('\n'))
  commitRepository(folder)
  return folder
}

function perStory(work: (folder: string) => number): () => number {
  return () => {
    const folder = repository()
    try {
      return work(folder) / stories
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
}

const shell = `for i in $(seq ${stories}); do git rev-parse HEAD; echo prompt | sh -c '${agent}'; git add -A; git commit -qm "checkpoint: $i"; done > /dev/null`

print(
  `overhead per story, ${stories} stories, 100 files`,
  compare(
    [
      {
        name: 'shell loop: rev-parse, agent, add -A, commit',
        sample: perStory((folder) => timed('sh', ['-c', shell], { cwd: folder })),
      },
      {
        name: 'ralph loop --json',
        sample: perStory((folder) =>
          timed(process.execPath, [program, 'loop', 'demo', '--agent-command', agent, '--json'], {
            cwd: folder,
          }),
        ),
      },
    ],
    rounds,
  ),
)
