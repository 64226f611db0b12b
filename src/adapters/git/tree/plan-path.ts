// Which paths are the plan's.

/** In the folder of the change, wherever the repository has its openspec folder. */
export function isOfPlan(change: string, path: string): boolean {
  return `/${path}`.includes(`/openspec/changes/${change}/`)
}
