// A temp folder of a run's own: agents leave megabytes there, and what is named after its run can be found after a crash.
import { accessSync, constants, mkdtempSync } from 'node:fs'
import { chmod, lstat, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'

export function makeTemp(runId: string, env: NodeJS.ProcessEnv): string {
  return mkdtempSync(join(tempBase(env), prefixOf(runId)))
}

/** Whether it is gone. Never rejects: what an agent left there decides nothing. */
export async function removeTemp(folder: string): Promise<boolean> {
  if (await removed(folder)) return true
  // Caches of package managers are read-only down to their folders.
  await open(folder)
  return removed(folder)
}

/** Whatever is left of the run's, now that nothing of it is alive. */
export async function removeTemps(runId: string, env: NodeJS.ProcessEnv): Promise<void> {
  const names = await readdir(tempBase(env)).catch(() => [])
  for (const name of names) if (name.startsWith(prefixOf(runId))) await removeTemp(join(tempBase(env), name))
}

function removed(folder: string): Promise<boolean> {
  return rm(folder, { recursive: true, force: true, maxRetries: 3 }).then(
    () => true,
    () => false,
  )
}

async function open(folder: string): Promise<void> {
  // A link is no folder here: what it points to is not ralph's.
  const isFolder = await lstat(folder)
    .then((stat) => stat.isDirectory())
    .catch(() => false)
  if (!isFolder) return
  await chmod(folder, 0o700).catch(() => undefined)
  for (const name of await readdir(folder).catch(() => [])) await open(join(folder, name))
}

export function tempBase(env: NodeJS.ProcessEnv): string {
  // One that is not there, cannot be written, or is relative to the work tree, is no place for it.
  const wished = [env['TMPDIR'] ?? '', tmpdir(), '/tmp']
  return wished.find((folder) => isAbsolute(folder) && isWritable(folder)) ?? tmpdir()
}

export function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Short: sockets of tools are made in there, and their paths end at 108 bytes. */
function prefixOf(runId: string): string {
  return `ralph-${runId.replaceAll(/[^\w-]/g, '').slice(0, 13)}-`
}
