// Reads `.claude/loop-state.json` without ever changing it.
import { readJson } from '../../core/json.ts'
import { isSurelyStateFile } from '../../core/shape.ts'
import type { StateFile } from '../../core/state-file.ts'
import { readIfThere } from './whole.ts'

/** Undefined when it is no state file of ours. */
export async function parseState(text: string): Promise<StateFile | undefined> {
  const value = readJson(text)
  if (isSurelyStateFile(value)) return value
  const { stateFileSchema } = await import('../../core/state-file.ts')
  const parsed = stateFileSchema.safeParse(value)
  return parsed.success ? parsed.data : undefined
}

/** For readers: the file as it is, or undefined when there is none; never writes. */
export async function readStateFile(path: string): Promise<StateFile | undefined> {
  const bytes = await readIfThere(path)
  return bytes === undefined ? undefined : parseState(bytes.toString('utf8'))
}
