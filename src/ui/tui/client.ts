// What the terminal UI works with: it looks and asks like any other face, and the loop runs in another process.
import type { RawFlags } from '../../config/load.ts'
import type { App, Said } from '../app.ts'

export interface Client extends App {
  /** Begins a loop in a process of its own, which outlives this one. Resolves when it is there to be followed. */
  start(request: StartRequest): Promise<Started | Refused>
  /** Text for the next prompt of a running loop. */
  note(change: string, text: string): Promise<Said>
  /** A wait for a limit or a service ends now. */
  skipWait(change: string): Promise<Said>
  /** What the first line says of where this is. */
  readonly place: string
  readonly env: NodeJS.ProcessEnv
  /** Wall clock, epoch ms. */
  now(): number
}

export interface StartRequest {
  readonly change: string
  readonly how: 'loop' | 'resume'
  /** Beyond what files and variables say. */
  readonly flags: RawFlags
}

interface Started {
  readonly change: string
}

interface Refused {
  readonly refused: string
  readonly exitCode: number
}
