// How many stories of a change are open in this checkout now: what is true of the change, whatever its last run says.
import { summariseChange } from '../adapters/openspec/changes.ts'
import { RalphError } from '../core/error.ts'
import { findRootOf } from './root.ts'
import type { Site } from './site.ts'

export interface PlanNow {
  readonly open: number
  readonly done: number
  readonly total: number
}

/** Undefined where there is no plan to count: archived since, without tasks, or not readable. */
export async function planNow(site: Site, change: string): Promise<PlanNow | undefined> {
  try {
    const found = await summariseChange(await findRootOf(site), change, site.env)
    if (found.problem !== '' || found.stories_total === 0) return undefined
    return { open: found.stories_open, done: found.stories_done, total: found.stories_total }
  } catch (error) {
    if (error instanceof RalphError) return undefined
    throw error
  }
}
