// `ralph demo`: a throw-away repository with a small project and a plan of three stories.
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gitEnvironment } from '../adapters/git/git.ts'
import { exec } from '../adapters/process/exec.ts'
import { startHint } from '../adapters/process/fault.ts'
import { RalphError } from '../core/error.ts'
import type { Demo } from '../ui/app.ts'

const change = 'add-greeting'

const files: Readonly<Record<string, string>> = {
  'README.md': '# greeter\n\nA small program that will learn to greet.\n',
  'package.json':
    '{\n  "name": "greeter",\n  "private": true,\n  "type": "module",\n  "scripts": { "test": "node --test" }\n}\n',
  'test/readme.test.js': `import assert from 'node:assert'
import { readFileSync } from 'node:fs'
import test from 'node:test'

test('the README names the program', () => {
  assert.match(readFileSync('README.md', 'utf8'), /^# greeter/)
})
`,
  [`openspec/changes/${change}/proposal.md`]: `# Add a greeting

## Why
The program says nothing yet.

## What Changes
- It greets by name, in two languages, and says how to use it.
`,
  [`openspec/changes/${change}/specs/greeting/spec.md`]: `## ADDED Requirements

### Requirement: Greeting
The program SHALL greet by name.

#### Scenario: Greet a person
- **WHEN** the program is called with a name
- **THEN** it prints a greeting with that name
`,
  [`openspec/changes/${change}/tasks.md`]: `## 1. Greet by name

- [ ] 1.1 Write the function that greets
- [ ] 1.2 Print the greeting

## 2. A second language

- [ ] 2.1 Add Hungarian
- [ ] 2.2 Choose the language by a flag

## 3. Tell people

- [ ] 3.1 Write how to use it into the README
`,
}

const several = ['add-colours', 'add-dates', 'add-emoji', 'add-farewell', 'add-help', 'add-names']

/** One story each. */
const plans: Readonly<Record<string, string>> = Object.fromEntries(
  several.flatMap((name) => {
    const title = `${name.slice(0, 1).toUpperCase()}${name.slice(1).replaceAll('-', ' ')}`
    return [
      [`openspec/changes/${name}/proposal.md`, `# ${title}\n`],
      [`openspec/changes/${name}/tasks.md`, `## 1. ${title}\n\n- [ ] 1.1 Write it\n- [ ] 1.2 Tell people\n`],
    ]
  }),
)

/** With `isParallel` six small changes instead of one of three stories. */
export async function makeDemo(env: NodeJS.ProcessEnv, isParallel: boolean): Promise<Demo> {
  const folder = await realpath(await mkdtemp(join(env['TMPDIR'] ?? tmpdir(), 'ralph-demo-')))
  const repo = join(folder, 'greeter')
  try {
    await fill(repo, env, isParallel)
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
  return { folder, repo, change }
}

async function fill(repo: string, env: NodeJS.ProcessEnv, isParallel: boolean): Promise<void> {
  for (const [name, text] of Object.entries({ ...files, ...(isParallel && plans) })) {
    if (isParallel && name.startsWith(`openspec/changes/${change}/`)) continue
    await mkdir(dirname(join(repo, name)), { recursive: true })
    await writeFile(join(repo, name), text)
  }
  await git(repo, env, 'init', '--quiet', '--initial-branch=main')
  // Who has no name in git yet can try everything all the same.
  await git(repo, env, 'config', 'user.name', 'ralph')
  await git(repo, env, 'config', 'user.email', 'ralph@localhost')
  await git(repo, env, 'add', '--all')
  await git(repo, env, 'commit', '--quiet', '--message', 'A small project with a plan')
}

/** Whatever the user's own git is set to (hooks, signatures) is not for this. */
async function git(cwd: string, env: NodeJS.ProcessEnv, ...args: string[]): Promise<void> {
  const plain = ['-c', 'core.hooksPath=/dev/null', '-c', 'commit.gpgSign=false']
  const result = await exec('git', [...plain, ...args], {
    cwd,
    env: gitEnvironment(env),
    timeoutMs: 60_000,
  })
  if (result.exitCode === 0) return
  const why = result.spawnError?.message ?? result.stderr.trim()
  throw new RalphError('git_failed', `git ${args[0] ?? ''} failed in ${cwd}: ${why}`, {
    hint:
      result.spawnError === undefined
        ? 'Nothing else was touched.'
        : startHint(result.spawnError, 'Install git 2.38 or newer, or put it on PATH.'),
    exitCode: 2,
  })
}
