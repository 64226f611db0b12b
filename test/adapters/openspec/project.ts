// A throw-away OpenSpec project for the tests of this part.
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach } from 'vitest'
import { openspecSource, type SourceDeps } from '../../../src/adapters/openspec/source.ts'
import type { SpecSource } from '../../../src/ports.ts'

export const program = join(import.meta.dirname, '../../../node_modules/.bin/openspec')

export const someTasks = `# Tasks

## 1. First

- [x] 1.1 one
- [ ] 1.2 two
- [?] 1.3 ask

## 2. Second

- [ ] 2.1 three
`

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

export async function tempFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'ralph-openspec-')))
  folders.push(folder)
  return folder
}

/** Home and registries of its own: the user's settings must not reach the program under test. */
export function testEnv(home: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_DATA_HOME: join(home, '.local', 'share'),
  }
}

export async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
}

export interface Project {
  readonly root: string
  readonly dir: string
  readonly tasks: string
  readonly deps: SourceDeps
  readonly source: SpecSource
  readonly text: (file?: string) => Promise<string>
}

export const changeFiles = {
  'proposal.md': '# Change: Add export\n\n## Why\nPeople ask.\n',
  'design.md': '## Decisions\nPlain text.\n',
  'specs/csv/spec.md':
    '## ADDED Requirements\n### Requirement: Rows\nIt SHALL write rows.\n\n#### Scenario: One\n- **WHEN** asked\n- **THEN** written\n',
}

export async function makeProject(tasks: string = someTasks, change = 'add-export'): Promise<Project> {
  const root = await tempFolder()
  const dir = join(root, 'openspec', 'changes', change)
  await writeFiles(dir, { ...changeFiles, 'tasks.md': tasks })
  return project(root, change)
}

export async function project(root: string, change = 'add-export', worktree = root): Promise<Project> {
  const away = await tempFolder()
  const dir = join(root, 'openspec', 'changes', change)
  const deps = {
    worktree,
    root,
    change,
    guardDir: join(away, 'guard'),
    learningsPath: join(away, 'learnings.md'),
    env: testEnv(away),
  }
  return {
    root,
    dir,
    tasks: join(dir, 'tasks.md'),
    deps,
    source: openspecSource(deps),
    text: async (file = 'tasks.md') => readFile(join(dir, file), 'utf8'),
  }
}
