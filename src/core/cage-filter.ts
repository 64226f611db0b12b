// What a cage takes from its inmates of the kernel's calls, as a program for `bwrap --seccomp`: only what leads past every namespace.
import type { CageMode } from './cage.ts'

interface Calls {
  /** As the kernel tells a filter which kind of calls a program makes (AUDIT_ARCH_…). */
  readonly kind: number
  /** Numbers from here on are of another kind that is told as this one: x32. */
  readonly end?: number
  /** To keys that the user's session has: add_key, request_key, keyctl. */
  readonly keys: readonly number[]
  readonly socket: number
  /** One for all that sockets do, with what is asked for in memory, where a filter cannot look. */
  readonly socketcall?: number
}

/** Programs of 32 bits run as well, with numbers of their own. */
const machines: Readonly<Record<string, readonly Calls[]>> = {
  x64: [
    { kind: 0xc000_003e, end: 0x4000_0000, keys: [248, 249, 250], socket: 41 },
    { kind: 0x4000_0003, keys: [286, 287, 288], socket: 359, socketcall: 102 },
  ],
  arm64: [
    { kind: 0xc000_00b7, keys: [217, 218, 219], socket: 198 },
    { kind: 0x4000_0028, keys: [309, 310, 311], socket: 281 },
  ],
}

/** Has the same number everywhere. It makes sockets, too, past every filter. */
const ioUringSetup = 425

const [unix, inet, netlink, inet6, vsock] = [1, 2, 16, 10, 40]

const allowed = 0x7fff_0000
const killed = 0x8000_0000
const refused = (errno: number): number => 0x0005_0000 + errno
const [notPermitted, noSuchCall, noSuchFamily] = [1, 38, 97].map(refused) as [number, number, number]

/** Where in what it is given the kernel has these. */
const [number, kind, firstArgument] = [0, 4, 16]

type Step = readonly [code: number, ifSo: number, ifNot: number, value: number]
const load = (at: number): Step => [0x20, 0, 0, at]
const end = (what: number): Step => [0x06, 0, 0, what]
const when = (value: number, steps: readonly Step[]): Step[] => [[0x15, 0, steps.length, value], ...steps]

/** Undefined for a machine whose calls are not listed here: it has none. */
export function callFilter(mode: CageMode, machine: string): Uint8Array | undefined {
  const kinds = machines[machine]
  if (kinds === undefined) return undefined
  const steps = [
    load(kind),
    ...kinds.flatMap((calls) => when(calls.kind, stepsOf(mode, calls))),
    // No program of this machine makes such calls.
    end(killed),
  ]
  const bytes = new DataView(new ArrayBuffer(steps.length * 8))
  for (const [at, [code, ifSo, ifNot, value]] of steps.entries()) {
    bytes.setUint16(at * 8, code, true)
    bytes.setUint8(at * 8 + 2, ifSo)
    bytes.setUint8(at * 8 + 3, ifNot)
    bytes.setUint32(at * 8 + 4, value, true)
  }
  return new Uint8Array(bytes.buffer)
}

function stepsOf(mode: CageMode, { end: last, keys, socket, socketcall }: Calls): Step[] {
  return [
    load(number),
    ...(last === undefined ? [] : ([[0x35, 0, 1, last], end(noSuchCall)] satisfies Step[])),
    ...[...keys, ioUringSetup].flatMap((call) => when(call, [end(notPermitted)])),
    ...when(socket, [load(firstArgument), ...familiesOf(mode)]),
    ...(socketcall === undefined
      ? []
      : when(socketcall, [load(firstArgument), ...when(1, [end(notPermitted)]), end(allowed)])),
    end(allowed),
  ]
}

/** Those that know of network namespaces; vsock leads to the host of a virtual machine, also where there is no network. */
function familiesOf(mode: CageMode): Step[] {
  return mode === 'strict'
    ? [...[unix, inet, inet6, netlink].flatMap((family) => when(family, [end(allowed)])), end(noSuchFamily)]
    : [...when(vsock, [end(noSuchFamily)]), end(allowed)]
}
