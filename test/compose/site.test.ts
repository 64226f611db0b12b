// A loop that ends while it is looked at.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { fileLock } from '../../src/adapters/files/lock.ts'
import { isDead, knowing, knownRun, openSite, pathsOf, remembering } from '../../src/compose/site.ts'
import type { Knowing, Site } from '../../src/compose/site.ts'
import { goodAgent, ralph, scratch, tasksOf } from '../e2e/harness.ts'

const ways: Readonly<Record<string, (site: Site) => Knowing>> = {
  once: (site) => (change) => knownRun(site, change),
  'in parts': (site) => remembering(site),
  'again and again': (site) => knowing(site).known,
}

test.each(Object.entries(ways))(
  'Q7: a loop that ends between the look at its journal and the look at its lock is not dead (%s)',
  async (_, way) => {
    const at = scratch({ tasks: tasksOf(1) })
    expect((await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])).code).toBe(0)
    const site = await openSite(at.repo, at.env)
    const { journal, lock } = pathsOf(site, 'demo')
    const whole = readFileSync(journal, 'utf8')
    const under = whole.slice(0, whole.indexOf('"type":"story.started"'))
    const begun = under.slice(0, under.lastIndexOf('\n') + 1)
    const owner = { change: 'demo', purpose: 'loop' as const, worktree: at.repo, since: '' }
    for (const asks of [1, 2, 3]) {
      writeFileSync(journal, begun)
      await fileLock(lock, owner, site.identity).acquire()
      let asked = 0
      const watched: Site = {
        ...site,
        identity: {
          ...site.identity,
          // Who looks at the lock asks this; the loop ends at that very moment.
          isAlive: (pid, started) => {
            asked += 1
            if (asked === asks) {
              writeFileSync(journal, whole)
              rmSync(lock)
            }
            return asked < asks && site.identity.isAlive(pid, started)
          },
        },
      }
      const known = way(watched)
      const looks = [await known('demo'), await known('demo'), await known('demo')]
      expect(looks.map((run) => isDead(run))).toEqual([false, false, false])
    }
  },
)
