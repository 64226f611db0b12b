// What the terminal UI works with: it looks and asks like any other face, and the loop runs in another process.
import type { RawFlags } from '../../config/load.ts'
import type { App } from '../app.ts'

export interface Client extends App {
  /** Begins a loop in a process of its own, which outlives this one. Resolves when it is there to be followed. */
  start(request: StartRequest): Promise<Started | Refused>
  /** What the first line says of where this is. */
  readonly place: string
  readonly env: NodeJS.ProcessEnv
  /** Wall clock, epoch ms. */
  now(): number
}

export interface StartRequest {
  /** Undefined: the only one that can be meant. */
  readonly change: string | undefined
  readonly how: 'loop' | 'resume'
  /** Beyond what files and variables say. */
  readonly flags: RawFlags
  readonly feedback?: string | undefined
  readonly acceptsConfig?: boolean
  /** Nobody follows it: it asks nothing, and ends as in a pipe. */
  readonly isAlone?: boolean
  /** Beyond this process's own. */
  readonly env?: Readonly<Record<string, string>>
  /** Asked before anything is touched, where a start would do what few expect. Absent: whoever starts it was told. */
  readonly confirm?: (what: string) => Promise<boolean>
}

interface Started {
  readonly change: string
  /** Warnings on the way. */
  readonly said: string
}

interface Refused {
  /** In the words of the plain terminal. */
  readonly refused: string
  readonly exitCode: number
}
