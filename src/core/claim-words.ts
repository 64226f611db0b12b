// What came of a claim, in one line: the same in plain lines, on the screens, in `logs` and in `why`.
import type { LoopEvent } from './event.ts'

type Judged = Extract<LoopEvent, { type: 'claim.judged' }>

/** `claim 1 refused: npm test failed (exit 1)` */
export function claimWords({ claim, outcome, reason }: Pick<Judged, 'claim' | 'outcome' | 'reason'>): string {
  return `claim ${claim} ${outcome}${reason === '' ? '' : `: ${reason}`}`
}
