import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openStateFile } from '../../../src/adapters/files/state-file.ts'
import { readStateFile } from '../../../src/adapters/files/state-reader.ts'
import { stateFileSchema } from '../../../src/core/state-file.ts'
import { toStateFile } from '../../../src/core/state-snapshot.ts'
import { initialState } from '../../../src/core/state.ts'

let root = ''
let path = ''
let archive = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'ralph-state-'))
  path = join(root, 'tree', '.claude', 'loop-state.json')
  archive = join(root, 'archive')
  await mkdir(join(root, 'tree'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

const state = toStateFile(initialState('demo'))

describe('state file', () => {
  test('O15: a link that comes and goes in place of its folder: nothing is written where it leads to', async () => {
    const outside = join(root, 'outside')
    await mkdir(outside)
    await writeFile(join(outside, 'loop-state.json'), 'of the user\n')
    const { writer } = await openStateFile(path, archive, 'demo')
    await writer.write(state)
    const swap =
      'while [ ! -e ../enough ]; do rm -rf .claude; ln -sT ../outside .claude; rm -f .claude; mkdir .claude; done'
    const agent = spawn('sh', ['-c', swap], { cwd: join(root, 'tree'), stdio: 'ignore' })
    const ended = once(agent, 'exit')
    try {
      for (let n = 0; n < 1_000; n++)
        await writer.write(state).catch((error: NodeJS.ErrnoException) => {
          expect(error.code).toMatch(/^E[A-Z]+$/)
        })
    } finally {
      await writeFile(join(root, 'enough'), '')
      await ended
    }
    expect(await readdir(outside)).toEqual(['loop-state.json'])
    expect(await readFile(join(outside, 'loop-state.json'), 'utf8')).toBe('of the user\n')
  })

  test('R14: a folder that comes and goes in place of the work tree: nothing is written into it', async () => {
    const { writer } = await openStateFile(path, archive, 'demo')
    await writer.write(state)
    const swap =
      'for i in $(seq 400); do rm -rf tree/.claude; mv tree away; mkdir tree; rmdir tree || exit 1; mv away tree; done'
    const user = spawn('sh', ['-c', swap], { cwd: root, stdio: 'ignore' })
    const ended = once(user, 'exit')
    while (user.exitCode === null) {
      await writer.write(state).catch((error: NodeJS.ErrnoException) => {
        expect(error.code).toMatch(/^E[A-Z]+$/)
      })
      await setImmediate()
    }
    expect(await ended).toEqual([0, null])
  })

  test('S004-state-file-schema: every required field is there from the first write, mode 0644', async () => {
    const { writer } = await openStateFile(path, archive, 'demo')
    await writer.write(state)
    expect(stateFileSchema.parse(JSON.parse(await readFile(path, 'utf8')))).toEqual(state)
    expect((await stat(path)).mode & 0o777).toBe(0o644)
  })

  test('unknown fields of others are preserved', async () => {
    await mkdir(join(root, 'tree', '.claude'))
    await writeFile(path, JSON.stringify({ ...state, label: 'mine', nested: { a: 1 } }))
    const { writer, note } = await openStateFile(path, archive, 'demo')
    await writer.write(state)
    expect(note).toBe('')
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({
      label: 'mine',
      nested: { a: 1 },
      change_id: 'demo',
    })
  })

  test.each(['', 'not json', '[1]', '{"change_id":1}'])(
    'a corrupt or foreign file %j is backed up and named, never overwritten',
    async (content) => {
      await mkdir(join(root, 'tree', '.claude'))
      await writeFile(path, content)
      const { writer, note } = await openStateFile(path, archive, 'demo')
      await writer.write(state)
      const backup = (await readdir(join(root, 'tree', '.claude'))).find((name) => name.includes('backup'))
      expect(note).toContain(backup)
      expect(await readFile(join(root, 'tree', '.claude', backup ?? ''), 'utf8')).toBe(content)
    },
  )

  test("another change's file is archived, not lost", async () => {
    await mkdir(join(root, 'tree', '.claude'))
    const other = JSON.stringify({ ...state, change_id: 'other' })
    await writeFile(path, other)
    await openStateFile(path, archive, 'demo')
    const [kept = ''] = await readdir(archive)
    expect(await readFile(join(archive, kept), 'utf8')).toBe(other)
  })

  test('stray temporary files of a killed writer are swept', async () => {
    await mkdir(join(root, 'tree', '.claude'))
    await writeFile(`${path}.1234567`, 'half')
    await writeFile(`${path}.mine`, "the user's own")
    await openStateFile(path, archive, 'demo')
    expect(await readdir(join(root, 'tree', '.claude'))).toEqual(['loop-state.json.mine'])
  })

  test('R14: a work tree deleted under it is not made again', async () => {
    const { writer } = await openStateFile(path, archive, 'demo')
    await rm(join(root, 'tree'), { recursive: true })
    await expect(writer.write(state)).rejects.toThrow(/ENOENT/)
    expect(await readdir(root)).not.toContain('tree')
  })

  test('.claude deleted by an agent in mid-run is made again', async () => {
    const { writer } = await openStateFile(path, archive, 'demo')
    await writer.write(state)
    await rm(join(root, 'tree', '.claude'), { recursive: true })
    await writer.write(state)
    expect(await readStateFile(path)).toEqual(state)
  })

  test('U4: a reader during writes sees valid JSON, 1,000 reads out of 1,000', async () => {
    const { writer } = await openStateFile(path, archive, 'demo')
    await writer.write(state)
    let writing = true
    const writes = (async () => {
      for (let n = 0; writing; n += 1) await writer.write({ ...state, task: 'x'.repeat(n % 50_000) })
    })()
    for (let n = 0; n < 1_000; n += 1)
      expect(stateFileSchema.safeParse(JSON.parse(await readFile(path, 'utf8'))).success).toBe(true)
    writing = false
    await writes
  })
})
