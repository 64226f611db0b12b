// Which events leave the program (`--json`). Apart from their schemas: to build those took a twentieth of a short loop.
import type { EventBody, PublicBody } from './event.ts'

const publicTypes: Readonly<Record<PublicBody['type'], true>> = {
  'loop.started': true,
  'story.started': true,
  'iteration.started': true,
  'agent.message': true,
  'agent.tool': true,
  'agent.usage': true,
  'claim.made': true,
  'claim.judged': true,
  'failure.reported': true,
  'progress.reported': true,
  'gate.started': true,
  'gate.ended': true,
  'baseline.started': true,
  'baseline.ended': true,
  'checkpoint.saved': true,
  'checkpoint.reverted': true,
  'iteration.ended': true,
  waiting: true,
  'login.limited': true,
  'note.added': true,
  warning: true,
  error: true,
  max_retries_exceeded: true,
  'choice.needed': true,
  complete: true,
}

export const publicEventTypes: readonly string[] = Object.keys(publicTypes)

export function isPublic({ type }: EventBody): boolean {
  return type in publicTypes
}
