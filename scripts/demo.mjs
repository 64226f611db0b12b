// `npm run demo`: a throw-away repository, a change of three stories, the real loop on it with the scripted demo agent.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ensureInstalled, root } from './install.mjs'

const program = join(root, 'dist', 'main.js')

function must(file, args, options = {}) {
  const { status } = spawnSync(file, args, { cwd: root, stdio: 'inherit', ...options })
  if (status !== 0) process.exit(status ?? 1)
}

ensureInstalled()
must(process.execPath, ['scripts/build.mjs'])

const repo = join(mkdtempSync(join(tmpdir(), 'ralph-demo-')), 'greeter')
const change = join(repo, 'openspec', 'changes', 'add-greeting')
mkdirSync(join(change, 'specs', 'greeting'), { recursive: true })
writeFileSync(join(repo, 'README.md'), '# greeter\n\nA small program that will learn to greet.\n')
writeFileSync(
  join(change, 'proposal.md'),
  '# Add a greeting\n\n## Why\nThe program says nothing yet.\n\n## What Changes\n- It greets by name, in two languages, and says how to use it.\n',
)
writeFileSync(
  join(change, 'specs', 'greeting', 'spec.md'),
  `## ADDED Requirements

### Requirement: Greeting
The program SHALL greet by name.

#### Scenario: Greet a person
- **WHEN** the program is called with a name
- **THEN** it prints a greeting with that name
`,
)
writeFileSync(
  join(change, 'tasks.md'),
  `## 1. Greet by name

- [ ] 1.1 Write the function that greets
- [ ] 1.2 Print the greeting

## 2. A second language

- [ ] 2.1 Add Hungarian
- [ ] 2.2 Choose the language by a flag

## 3. Tell people

- [ ] 3.1 Write how to use it into the README
`,
)

const git = (...args) => execFileSync('git', args, { cwd: repo, encoding: 'utf8' }).trimEnd()
git('init', '--quiet', '--initial-branch=main')
git('add', '--all')
git(
  '-c',
  'user.name=demo',
  '-c',
  'user.email=demo@example.invalid',
  'commit',
  '--quiet',
  '--message',
  'A small project with a plan',
)

console.log(`\nA throw-away repository: ${repo}`)
console.log('Its plan: openspec/changes/add-greeting/tasks.md, three stories.')
console.log(
  'The demo agent edits real files; at story 2 it fails once, so that you see the revert and the retry.\n',
)
console.log('$ ralph loop add-greeting --agent demo --on-complete cleanup\n')
const loop = spawnSync(
  process.execPath,
  [program, 'loop', 'add-greeting', '--agent', 'demo', '--on-complete', 'cleanup'],
  {
    cwd: repo,
    stdio: 'inherit',
  },
)

console.log(
  `\nexit code ${loop.status}. The work lies on \`${git('branch', '--show-current')}\`, uncommitted, for you to review:\n`,
)
console.log('$ git status --short')
console.log(git('status', '--short'))
console.log('\n$ ralph history')
spawnSync(process.execPath, [program, 'history', 'add-greeting'], { cwd: repo, stdio: 'inherit' })
console.log(`
Look around:
  cd ${repo}
  node ${program} attempts            every attempt, the failed one too
  node ${program} diff 2              what the failed attempt had done
  cat .claude/loop-state.json         what other programs read
Nothing else was left behind; delete ${dirname(repo)} when you are done.`)
process.exit(loop.status ?? 1)
