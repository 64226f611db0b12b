// The filter of a cage's calls, run as the kernel runs it: by a machine of four instructions.
import { describe, expect, test } from 'vitest'
import { callFilter } from '../../src/core/cage-filter.ts'

const [x64, i386, arm64, arm] = [0xc000_003e, 0x4000_0003, 0xc000_00b7, 0x4000_0028]
const [allow, kill, permission, noCall, noFamily] = [
  0x7fff_0000, 0x8000_0000, 0x0005_0001, 0x0005_0026, 0x0005_0061,
]

function answer(bytes: Uint8Array, kind: number, call: number, argument = 0): number {
  const program = new DataView(bytes.buffer)
  const given = new Map([
    [0, call],
    [4, kind],
    [16, argument],
  ])
  let held = 0
  for (let at = 0; at < bytes.length; at += 8) {
    const value = program.getUint32(at + 4, true)
    const jump = (is: boolean): void => void (at += 8 * program.getUint8(at + (is ? 2 : 3)))
    const code = program.getUint16(at, true)
    if (code === 0x20) held = given.get(value) ?? Number.NaN
    else if (code === 0x15) jump(held === value)
    else if (code === 0x35) jump(held >= value)
    else if (code === 0x06) return value
    else throw new Error(`no such instruction: ${code}`)
  }
  throw new Error('it has no end')
}

describe.each(['workspace', 'strict'] as const)('%s', (mode) => {
  test.each([
    ['x64', x64, 'read', 0, 0, allow],
    ['x64', x64, 'add_key', 248, 0, permission],
    ['x64', x64, 'request_key', 249, 0, permission],
    ['x64', x64, 'keyctl', 250, 0, permission],
    ['x64', x64, 'io_uring_setup', 425, 0, permission],
    ['x64', x64, 'socket of unix', 41, 1, allow],
    ['x64', x64, 'socket of IPv4', 41, 2, allow],
    ['x64', x64, 'socket of IPv6', 41, 10, allow],
    ['x64', x64, 'socket of netlink', 41, 16, allow],
    ['x64', x64, 'socket of vsock', 41, 40, noFamily],
    ['x64', x64, 'keyctl of x32', 0x4000_0000 + 250, 0, noCall],
    ['x64', x64, 'no call at all', 0xffff_ffff, 0, noCall],
    ['x64', i386, 'read', 3, 0, allow],
    ['x64', i386, 'what is keyctl elsewhere', 250, 0, allow],
    ['x64', i386, 'add_key', 286, 0, permission],
    ['x64', i386, 'request_key', 287, 0, permission],
    ['x64', i386, 'keyctl', 288, 0, permission],
    ['x64', i386, 'io_uring_setup', 425, 0, permission],
    ['x64', i386, 'socket of vsock', 359, 40, noFamily],
    ['x64', i386, 'socket by socketcall', 102, 1, permission],
    ['x64', i386, 'connect by socketcall', 102, 3, allow],
    ['x64', arm64, 'another machine', 0, 0, kill],
    ['arm64', arm64, 'read', 63, 0, allow],
    ['arm64', arm64, 'add_key', 217, 0, permission],
    ['arm64', arm64, 'request_key', 218, 0, permission],
    ['arm64', arm64, 'keyctl', 219, 0, permission],
    ['arm64', arm64, 'io_uring_setup', 425, 0, permission],
    ['arm64', arm64, 'socket of unix', 198, 1, allow],
    ['arm64', arm64, 'socket of vsock', 198, 40, noFamily],
    ['arm64', arm, 'add_key', 309, 0, permission],
    ['arm64', arm, 'request_key', 310, 0, permission],
    ['arm64', arm, 'keyctl', 311, 0, permission],
    ['arm64', arm, 'socket of vsock', 281, 40, noFamily],
    ['arm64', arm, 'read', 3, 0, allow],
    ['arm64', x64, 'another machine', 0, 0, kill],
  ] as const)('%s, %i: %s', (machine, kind, _, call, argument, what) => {
    const filter = callFilter(mode, machine)
    expect(filter && answer(filter, kind, call, argument)).toBe(what)
  })
})

test('families that know of no network namespace are for a cage that has the network', () => {
  const [free, strict] = (['workspace', 'strict'] as const).map((mode) => callFilter(mode, 'x64'))
  const bluetooth = 31
  expect([free && answer(free, x64, 41, bluetooth), strict && answer(strict, x64, 41, bluetooth)]).toEqual([
    allow,
    noFamily,
  ])
})

test('a machine whose calls are not known has none', () => {
  expect(callFilter('strict', 'riscv64')).toBeUndefined()
})
