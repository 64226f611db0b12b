// A run on its way into the archive: until the next one has its first record it is still the run of its change.
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { RunPaths } from '../adapters/files/paths.ts'
import { ifThereNow } from '../adapters/files/whole.ts'

/** A fresh start that was cut off before its first record: the run that it was to replace is still the one, and lies in the archive. */
export function putAway(paths: RunPaths): RunPaths | undefined {
  const name = archivingName(paths)
  if (name === undefined) return undefined
  const there = (path: string): string => join(paths.archive, name, basename(path))
  const { journal, guard, transcripts, talk } = paths
  return {
    ...paths,
    journal: there(journal),
    guard: there(guard),
    transcripts: there(transcripts),
    talk: there(talk),
  }
}

/** Of the run that is on its way into the archive. */
export function archivingName({ archiving }: RunPaths): string | undefined {
  return ifThereNow(() => readFileSync(archiving, 'utf8'))
}
