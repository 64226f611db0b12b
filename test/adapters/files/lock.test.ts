import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fileLock, inspectLock } from '../../../src/adapters/files/lock.ts'
import type { Identity, LockOwner } from '../../../src/adapters/files/lock.ts'
import { bootId, isAlive, processIdentity } from '../../../src/adapters/process/table.ts'

let folder = ''
let path = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ralph-lock-'))
  path = join(folder, 'lock.json')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const identity: Identity = {
  pid: process.pid,
  started: processIdentity(process.pid),
  bootId: bootId(),
  isAlive,
}
const what = { change: 'demo', worktree: '/somewhere', since: '2026-01-01T00:00:00+00:00' }
const lock = (): ReturnType<typeof fileLock> => fileLock(path, what, identity)

async function tamper(change: (owner: LockOwner) => LockOwner): Promise<void> {
  const owner = JSON.parse(await readFile(path, 'utf8')) as LockOwner
  await writeFile(path, JSON.stringify(change(owner)))
}

describe('lock', () => {
  test('G26: a second acquire is refused with exit 7 and names pid, change and work tree', async () => {
    await lock().acquire()
    await expect(lock().acquire()).rejects.toMatchObject({ code: 'locked', exitCode: 7 })
    await expect(lock().acquire()).rejects.toThrow(new RegExp(`demo in /somewhere, pid ${process.pid}`))
  })

  test('after a release it can be had again, and nothing is left behind', async () => {
    const held = await lock().acquire()
    await held.release()
    const again = await lock().acquire()
    await again.release()
    expect(await readdir(folder)).toEqual([])
  })

  test('R7: a reused pid is not the owner: another start time means dead', async () => {
    await lock().acquire()
    await tamper((owner) => ({ ...owner, pid_started: 'another time' }))
    expect(inspectLock(path, identity).held).toBe('dead')
    await (await lock().acquire()).release()
  })

  test('R7: after a reboot the owner is dead whatever its pid', async () => {
    await lock().acquire()
    await tamper((owner) => ({ ...owner, boot_id: 'an earlier boot' }))
    expect(inspectLock(path, identity).held).toBe('dead')
  })

  test('R7: death is never inferred across hosts', async () => {
    await lock().acquire()
    await tamper((owner) => ({ ...owner, host: 'elsewhere', boot_id: 'theirs' }))
    expect(inspectLock(path, identity).held).toBe('elsewhere')
    await expect(lock().acquire()).rejects.toThrow(/on host elsewhere/)
  })

  test.each(['', '{', '[]', '{"pid":"x"}', '\u0000\u0000'])(
    'an empty or corrupt lock %j is taken over',
    async (content) => {
      await writeFile(path, content)
      const held = await lock().acquire()
      expect(inspectLock(path, identity).held).toBe('alive')
      await held.release()
    },
  )

  test('a lock is released only by its owner', async () => {
    const held = await lock().acquire()
    await tamper((owner) => ({ ...owner, token: 'somebody else took over' }))
    await held.release()
    expect(await readdir(folder)).toEqual(['lock.json'])
  })

  test('G26: of many at once, over a dead lock too, exactly one gets it', async () => {
    await writeFile(path, '')
    const tries = await Promise.allSettled(Array.from({ length: 20 }, () => lock().acquire()))
    expect(tries.filter((each) => each.status === 'fulfilled')).toHaveLength(1)
  })
})
