// Scratch repositories in which ralph has run: the first test of a worker that begins with one makes it, the others get a copy.
import { expect } from 'vitest'
import { keep, ralph, scratch, type Finished, type Scratch } from './harness.ts'

/** Of the worker, not of this module: many files begin with the same run. */
const worker = globalThis as { scenes?: Map<string, () => Scratch> }
const scenes = (worker.scenes ??= new Map<string, () => Scratch>())

/** What `make` leaves, with all that it returns; no two files mean two things by one name. */
export async function scene<T extends Scratch>(name: string, make: () => Promise<T>): Promise<T> {
  const again = scenes.get(name)
  // By its name it is what the same `make` has returned.
  if (again !== undefined) return again() as T
  const made = await make()
  scenes.set(name, keep(made))
  return made
}

/** A repository with that plan after `ralph args`, and what that printed. */
export function after(
  args: readonly string[],
  how: { tasks: string; code: number },
): Promise<Scratch & { readonly end: Finished }> {
  return scene(JSON.stringify([args, how]), async () => {
    const at = scratch({ tasks: how.tasks })
    const end = await ralph(at, args)
    expect(end).toMatchObject({ code: how.code })
    return { ...at, end }
  })
}
