// The project whose merge queue is in a picture: one change has landed, two run, one is parked, one waits for it.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { program, type Scene } from './picture-scene.ts'

const titles = ['The plan', 'The work', 'Tell people']
const tasks = titles.map((title, at) => `## ${at + 1}. ${title}\n\n- [ ] ${at + 1}.1 Do it\n`).join('\n')
const changes = ['add-greeting', 'add-login', 'fix-dates', 'new-names', 'polish-cli']

const agent = `#!/bin/sh
cat > /dev/null
case "$RALPH_CHANGE$RALPH_STORY" in
  fix-dates2) echo '<promise>FAILED: the dates of 1582 need a decision: Julian or Gregorian?</promise>'; exit ;;
  add-login2 | new-names1) while [ ! -e "$PLAY_FOLDER/queue-ends" ]; do sleep 0.1; done ;;
esac
echo "$RALPH_STORY" >> "$RALPH_CHANGE.txt"
echo '<promise>COMPLETE</promise>'
`

export interface PictureQueue {
  readonly repo: string
  /** Of the command line. */
  readonly words: readonly string[]
  /** Its loops too. */
  stop(): void
}

export function makeQueue({ repo: other, env }: Scene): PictureQueue {
  const repo = join(dirname(other), 'calendar')
  const command = join(dirname(other), 'agent.sh')
  for (const change of changes) {
    mkdirSync(join(repo, 'openspec/changes', change), { recursive: true })
    writeFileSync(join(repo, 'openspec/changes', change, 'tasks.md'), tasks)
  }
  writeFileSync(command, agent, { mode: 0o755 })
  const call = (file: string, ...args: string[]): string =>
    execFileSync(file, args, { cwd: repo, env, encoding: 'utf8' })
  call('git', 'init', '-q', '-b', 'main')
  call('git', 'config', 'user.name', 'Anna')
  call('git', 'config', 'user.email', 'anna@example.invalid')
  call('git', 'add', '-A')
  call('git', 'commit', '-qm', 'start')
  const order = ['--jobs', '2', '--after', 'polish-cli:fix-dates']
  const how = ['--agent-command', command, '--verify', 'true', '--max-retries', '0']
  return {
    repo,
    words: ['up', ...changes, ...order, ...how],
    stop: () => void call(process.execPath, program, 'stop', '--all'),
  }
}
