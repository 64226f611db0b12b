// A person saves tasks.md while ralph writes it: in every moment of the write, by rename as editors do, and into the file that is there.
import { appendFileSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { makeProject } from './project.ts'

const byRename = (path: string, text: string): void => {
  writeFileSync(`${path}.editor`, text)
  renameSync(`${path}.editor`, path)
}
const saves: Readonly<Record<string, (path: string, added: string) => void>> = {
  'by rename': (path, added) => byRename(path, readFileSync(path, 'utf8') + added),
  'by an append': (path, added) => appendFileSync(path, added),
  'in place': (path, added) => writeFileSync(path, readFileSync(path, 'utf8') + added),
}
const open = '\n## 3. Theirs\n\n- [ ] 3.1 of the user\n'

/** Up to ralph's first wait for the disk: it has read the file and made a draft in that folder, and nothing of it runs before the test ends its turn. */
async function untilDrafted(folder: string): Promise<void> {
  const isDrafted = (): boolean =>
    existsSync(folder) && readdirSync(folder).some((name) => name.endsWith('.ralph-tmp'))
  for (let turn = 0; turn < 10_000 && !isDrafted(); turn += 1) await Promise.resolve()
  expect(isDrafted()).toBe(true)
}

test.each(Object.keys(saves))(
  'found by an attack: tasks.md saved %s while ralph ticks it has both: what was saved, and the ticks; an open task in it is one',
  async (how) => {
    const { source, tasks, text } = await makeProject()
    await source.guard()
    const ticking = source.tick('1')
    await untilDrafted(dirname(tasks))
    saves[how]?.(tasks, open)
    expect(await ticking).toBe(1)
    expect(await text()).toContain('- [x] 1.2 two')
    expect(await text()).toContain(open)
    expect((await source.read()).stories.map(({ title }) => title)).toContain('Theirs')
    expect((await readdir(dirname(tasks))).filter((name) => name.startsWith('.'))).toEqual([])
  },
)

test.each(Object.keys(saves))(
  'found by an attack: tasks.md saved %s while ralph puts back what the agent did to it is judged with what was saved',
  async (how) => {
    const { source, tasks, text, deps } = await makeProject()
    await source.guard()
    await writeFile(tasks, (await text()).replace('[ ] 2.1', '[x] 2.1'))
    const judging = source.judge('1')
    await untilDrafted(join(deps.guardDir, 'aside'))
    saves[how]?.(tasks, open)
    expect((await judging).putBack).toContainEqual(
      expect.stringContaining('"2.1 three" belongs to another story'),
    )
    expect(await text()).toContain('- [ ] 2.1 three')
    expect(await text()).toContain(open)
  },
)
