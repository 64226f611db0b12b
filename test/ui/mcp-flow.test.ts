// What an MCP client may have going at once: the rest of its flood stays in its own pipe.
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { flowTo } from '../../src/ui/mcp/flow.ts'

/** A deed that ends when the test says so. */
function held(): { readonly work: () => Promise<void>; readonly end: () => void; began: boolean } {
  let end = (): void => undefined
  const over = new Promise<void>((resolve) => (end = resolve))
  const deed = {
    began: false,
    end: () => end(),
    work: () => {
      deed.began = true
      return over
    },
  }
  return deed
}

const settled = async (): Promise<void> => {
  for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate)
}

test('four at a time, the others in their order, also after one that failed', async () => {
  const flow = flowTo(new PassThrough())
  const deeds = Array.from({ length: 6 }, held)
  const all = deeds.map(({ work }) => flow.run(work))
  await settled()
  expect(deeds.map(({ began }) => began)).toEqual([true, true, true, true, false, false])
  deeds[2]?.end()
  await settled()
  expect(deeds.map(({ began }) => began)).toEqual([true, true, true, true, true, false])
  for (const { end } of deeds) end()
  await Promise.all(all)
  await expect(flow.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  await expect(flow.run(() => Promise.resolve(7))).resolves.toBe(7)
})

test('while questions wait for their turn no more of them are read, and at the end every answer is waited for', async () => {
  const flow = flowTo(new PassThrough())
  const deeds = Array.from({ length: 5 }, held)
  const input = new PassThrough()
  input.write('first')
  let pieces = 0
  let isOver = false
  const reading = (async () => {
    for await (const piece of flow.throttled(input)) {
      pieces += piece.length > 0 ? 1 : 0
      if (pieces === 1) for (const { work } of deeds) void flow.run(work)
    }
    isOver = true
  })()
  await settled()
  input.write('second')
  await settled()
  expect(pieces).toBe(1)
  deeds[0]?.end()
  await settled()
  expect(pieces).toBe(2)
  input.end()
  await settled()
  expect(isOver).toBe(false)
  for (const { end } of deeds) end()
  await reading
  expect(isOver).toBe(true)
})

test('a large piece is taken in small ones, and none while the client leaves its answers unread', async () => {
  const stdout = new PassThrough()
  const flow = flowTo(stdout)
  const input = new PassThrough()
  input.write('x'.repeat(10_000))
  const sizes: number[] = []
  const reading = (async () => {
    for await (const piece of flow.throttled(input)) {
      sizes.push(piece.length)
      if (sizes.length === 1) stdout.write(Buffer.alloc(400 * 1024))
    }
  })()
  await settled()
  expect(sizes).toEqual([4096])
  stdout.resume()
  await settled()
  expect(sizes).toEqual([4096, 4096, 1808])
  input.end()
  await reading
})
