// The project that the pictures are taken in: a few changes in different states, and an agent that plays its part.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
export const program = join(root, 'dist/main.js')

export interface Scene {
  readonly repo: string
  readonly env: Record<string, string>
  /** The agent goes on from where it waits. */
  cue(name: string): void
  remove(): Promise<void>
}

const files: Readonly<Record<string, string>> = {
  '.gitignore': 'node_modules/\n',
  'README.md': '# greeter\n\nA program that greets.\n',
  'package.json': `${JSON.stringify({ name: 'greeter', version: '1.0.0', private: true, scripts: { test: 'node --test-reporter=spec test/greet.mjs' } }, undefined, 2)}\n`,
  'ralph.yaml': 'agent: claude\nverify:\n  - npm test\nmax_cost: 5\n',
  'src/greet.mjs': 'export function greet(name) {\n  return `hello ${name}`\n}\n',
  'test/greet.mjs': `import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { greet } from '../src/greet.mjs'

test('greets by name', () => assert.equal(greet('Anna'), 'hello Anna'))
if (existsSync('src/languages.mjs')) test('has a table of languages', () => assert.ok(greet))
if (existsSync('src/args.mjs'))
  test('greets in Hungarian', () => assert.equal(greet('Anna', 'hu'), 'szia Anna'))
// more
`,
  'openspec/changes/add-greeting/proposal.md':
    '# Greet people in their own language\n\n## Why\nPeople who run `greet` read English in Budapest.\n\n## What Changes\n- a table of languages\n- `--lang`\n',
  'openspec/changes/add-greeting/specs/greeting/spec.md': `## ADDED Requirements

### Requirement: Greeting by name
The program SHALL greet people by their name, in the language that was asked for.

#### Scenario: A name and a language
- **GIVEN** a table with English and Hungarian
- **WHEN** somebody runs \`greet --lang hu Anna\`
- **THEN** the program prints \`szia Anna\`
- **AND** it ends with exit code 0

#### Scenario: No language
- **WHEN** somebody runs \`greet Anna\`
- **THEN** the program prints \`hello Anna\`

### Requirement: Languages that are not known
The program SHALL refuse a language that is not in the table.

#### Scenario: A language that is not in the table
- **WHEN** somebody runs \`greet --lang xx Anna\`
- **THEN** the program names the languages that are in the table
- **AND** it ends with exit code 2
`,
  'openspec/changes/add-greeting/tasks.md': `## 1. Language table

- [ ] 1.1 Write the table of languages: English, magyar, 日本語 👋
- [ ] 1.2 Test that every language has a greeting

## 2. Greet by name

- [ ] 2.1 \`greet\` takes a name and a language
- [ ] 2.2 Greet nobody in particular where there is no name

## 3. Languages

- [ ] 3.1 Choose the language by a flag, \`--lang\`
- [ ] 3.2 Refuse a language that is not in the table, and name those that are
- [ ] 3.3 Test both

## 4. Tell people

- [ ] 4.1 Write into the README how to choose a language
- [ ] 4.2 Show an example for each language
`,
  'openspec/changes/polish-cli/proposal.md':
    '# Errors and exit codes that scripts can use\n\n## Why\nScripts cannot tell errors apart.\n',
  'openspec/changes/polish-cli/tasks.md': `## 1. Words for errors

- [ ] 1.1 One place for the words of errors

## 2. Exit codes

- [ ] 2.1 One place for exit codes
- [ ] 2.2 Use them

## 3. Manual page

- [ ] 3.1 Write the manual page
`,
  'openspec/changes/add-login/proposal.md': '# Log in with a key\n\n## Why\nGreetings are private.\n',
  'openspec/changes/add-login/tasks.md': [
    'Key file',
    'Read it',
    'Ask for it',
    'Log in',
    'Log out',
    'Tell people',
  ]
    .map((name, at) => `## ${at + 1}. ${name}\n\n- [ ] ${at + 1}.1 Do it\n`)
    .join('\n'),
  'openspec/changes/fix-dates/proposal.md': '# Dates as people write them\n\n## Why\n2026-11-17.\n',
  'openspec/changes/fix-dates/tasks.md':
    '## 1. Dates\n\n- [ ] 1.1 Write dates as people do\n\n## 2. Times\n\n- [ ] 2.1 And times\n',
  'openspec/changes/new-names/proposal.md': '# Shorter names, 短い名前 ✅\n\n## Why\nLong names.\n',
  'openspec/changes/new-names/tasks.md': [1, 2, 3]
    .map((n) => `## ${n}. Part ${n}\n\n- [x] ${n}.1 Rename\n`)
    .join('\n'),
}

export async function makeScene(resetSeconds: number): Promise<Scene> {
  const base = mkdtempSync(join(tmpdir(), 'ralph-pictures-'))
  const home = join(base, 'home')
  const [repo, bin, folder] = [join(home, 'src/greeter'), join(base, 'bin'), join(base, 'play')]
  for (const each of [repo, bin, folder]) mkdirSync(each, { recursive: true })
  symlinkSync(join(root, 'scripts/picture-agent.mjs'), join(bin, 'claude'))
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((each) => !each.includes('node_modules'))
  const env = {
    PATH: [bin, ...path].join(delimiter),
    HOME: home,
    TMPDIR: tmpdir(),
    TERM: 'xterm-256color',
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    GIT_CONFIG_NOSYSTEM: '1',
    OPENSPEC_TELEMETRY: '0',
    PLAY_FOLDER: folder,
    PLAY_RESET_SECONDS: String(resetSeconds),
  }
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(repo, name)), { recursive: true })
    writeFileSync(join(repo, name), text)
  }
  const days = (back: number): number => Date.now() / 1000 - back * 86_400
  for (const [name, back] of [
    ['add-greeting', 0.1],
    ['add-login', 2],
    ['new-names', 5],
  ] as const)
    utimesSync(join(repo, 'openspec/changes', name, 'tasks.md'), days(back), days(back))
  const call = (file: string, ...args: string[]): string =>
    execFileSync(file, args, { cwd: repo, env, encoding: 'utf8' })
  call('git', 'init', '-q', '-b', 'main')
  call('git', 'config', 'user.name', 'Anna')
  call('git', 'config', 'user.email', 'anna@example.invalid')
  call('git', 'add', '-A')
  call('git', 'commit', '-qm', 'start')
  const ralph = (...args: string[]): Promise<number | null> =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, [program, ...args], { cwd: repo, env, stdio: 'ignore' })
      child.once('exit', resolve)
    })
  const code = await ralph('loop', 'polish-cli', '--max-retries', '1')
  if (code !== 3) throw new Error(`the run that should be stuck ended with ${String(code)}`)
  call('git', 'switch', '-q', 'main')
  const away = ralph('loop', 'fix-dates', '--worktree', '--story', '1')
  return {
    repo,
    env,
    cue: (name) => writeFileSync(join(folder, name), ''),
    async remove() {
      writeFileSync(join(folder, 'dates'), '')
      await away
      rmSync(base, { recursive: true, force: true })
    },
  }
}
