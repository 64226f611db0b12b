// Reads `.claude/loop-state.json` without ever changing it.
import { readFile } from 'node:fs/promises'
import { isSurelyStateFile } from '../../core/shape.ts'
import type { StateFile } from '../../core/state-file.ts'

/** Undefined when it is no state file of ours. */
export async function parseState(text: string): Promise<StateFile | undefined> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (isSurelyStateFile(value)) return value
  const { stateFileSchema } = await import('../../core/state-file.ts')
  const parsed = stateFileSchema.safeParse(value)
  return parsed.success ? parsed.data : undefined
}

/** For readers: the file as it is, or undefined when there is none; never writes. */
export async function readStateFile(path: string): Promise<StateFile | undefined> {
  try {
    return await parseState(await readFile(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
