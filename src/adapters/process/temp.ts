// A temp folder of a run's own: agents leave megabytes there, and what is named after its run can be found after a crash.
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'

export function makeTemp(runId: string, env: NodeJS.ProcessEnv): string {
  return mkdtempSync(join(base(env), prefixOf(runId)))
}

/** Whatever is left of the run's, now that nothing of it is alive. */
export function removeTemps(runId: string, env: NodeJS.ProcessEnv): void {
  for (const name of readdirSync(base(env))) {
    if (name.startsWith(prefixOf(runId)))
      rmSync(join(base(env), name), { recursive: true, force: true, maxRetries: 3 })
  }
}

function base(env: NodeJS.ProcessEnv): string {
  // One that is not there, or relative to the work tree, is no place for it.
  const wished = [env['TMPDIR'] ?? '', tmpdir(), '/tmp']
  return wished.find((folder) => isAbsolute(folder) && existsSync(folder)) ?? tmpdir()
}

/** Short: sockets of tools are made in there, and their paths end at 108 bytes. */
function prefixOf(runId: string): string {
  return `ralph-${runId.replaceAll(/[^\w-]/g, '').slice(0, 13)}-`
}
