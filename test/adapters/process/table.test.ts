// The table of processes, and the part of it that began after one of them.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, test } from 'vitest'
import { birthOf, processTable } from '../../../src/adapters/process/table.ts'

const started: ChildProcess[] = []

async function sleeper(): Promise<number> {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' })
  started.push(child)
  await once(child, 'spawn')
  return child.pid ?? 0
}

afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

const pids = (table: ReturnType<typeof processTable>): number[] => table.map(({ pid }) => pid)

test('R4: the table since a birth has that process and all that began after it', async () => {
  const first = await sleeper()
  const birth = birthOf(first)
  const later = [await sleeper(), await sleeper()]
  expect(pids(processTable(birth))).toEqual(expect.arrayContaining([first, ...later]))
})

test('R4: where numbers may begin anew since a birth, or nobody counts them, all that is not older is in the table, whatever its number', async () => {
  const first = await sleeper()
  const { forks, started: startedAt } = birthOf(first)
  const last = 4_194_304
  for (const counted of [
    { pid: last - 10, forks },
    { pid: last, forks: 0 },
  ]) {
    expect(pids(processTable({ ...counted, started: 0 }))).toEqual(expect.arrayContaining([1, first]))
    const younger = pids(processTable({ ...counted, started: startedAt }))
    expect(younger).toContain(first)
    if (process.platform === 'linux') expect(younger).not.toContain(1)
  }
})
