// Looks at what ralph itself would obey later, around each attempt: the config files and what the gates run. It changes none of them.
import { dirname, join } from 'node:path'
import * as z from 'zod'
import { once } from '../core/once.ts'
import { mkdir } from '../adapters/files/now.ts'
import { readRecord, writeDurably } from '../adapters/files/whole.ts'
import { readSettingsFile } from '../config/files.ts'
import type { SettingsFile } from '../config/files.ts'
import { userFolder } from '../config/load.ts'
import type { Checkpoints, WriteAhead } from '../ports.ts'
import {
  changedBy,
  changesSince,
  distrust,
  keptFile,
  keptFileSchema,
  nameOf,
  type Level,
} from './config-trust.ts'
import { gateFiles } from './gate-files.ts'
import { openRepository } from '../adapters/git/tree/owner-access.ts'
import { readKept, settingsFile } from './run-settings.ts'
import { pathsOf } from './site.ts'
import type { Site } from './site.ts'

const seenSchema = once(() =>
  z.object({
    project: keptFileSchema(),
    user: keptFileSchema(),
    gates: z.record(z.string(), z.string()),
    /** What the attempt did to the project's file, until it is saved or reverted. */
    said: z.string(),
  }),
)
type Seen = z.infer<ReturnType<typeof seenSchema>>

export interface ConfigWatch {
  readonly change: string
  readonly gates: readonly string[]
  /** Where the work goes in the end: the user's own checkout. */
  readonly home: string
  readonly tell: WriteAhead
}

/** The same checkpoints. What changed while an attempt ran is written down before the attempt is kept, so that no kill can hide it. */
export function watchConfig(site: Site, checkpoints: Checkpoints, watch: ConfigWatch): Checkpoints {
  const { worktree, gitCommonDir: common } = site.git
  const paths = pathsOf(site, watch.change)
  const file = join(paths.root, 'config-seen.json')
  let last: { seen: Seen; n: number } | undefined
  const told = new Set<string>()
  const write = async (seen: Seen): Promise<void> => {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await writeDurably(file, JSON.stringify(seen), { rights: { mode: 0o600 } })
  }
  const files = async (): Promise<Record<Level, SettingsFile>> => ({
    project: await readSettingsFile(worktree),
    user: await readSettingsFile(userFolder(site.env)),
  })
  const warn = (code: string, message: string): Promise<void> =>
    watch.tell({ type: 'warning', code, message })

  const remember = async (): Promise<void> => {
    const now = await files()
    const gates = gateFiles(worktree, watch.gates)
    const before = last?.seen
    const isSame =
      before?.project.sha === now.project.sha &&
      before.user.sha === now.user.sha &&
      before.said === '' &&
      JSON.stringify(before.gates) === JSON.stringify(gates)
    if (isSame) return
    const seen = { project: keptFile(now.project), user: keptFile(now.user), gates, said: '' }
    last = { seen, n: last?.n ?? 0 }
    await write(seen)
  }

  const compare = async (n: number): Promise<void> => {
    // An agent may have closed the way to ralph's own files, too.
    openRepository(site.git)
    const seen = last?.seen ?? (await readSeen(file))
    if (seen === undefined) return
    const now = await files()
    const started = await readKept(settingsFile({ paths }))
    let { said } = seen
    for (const level of ['project', 'user'] as const) {
      if (now[level].sha === seen[level].sha) continue
      if (now[level].sha !== started?.files[level]?.sha)
        await distrust(common, level, now[level].sha, { change: watch.change, n })
      const changes = changesSince(seen[level], now[level])
      const what = `${nameOf(level, now[level])}${changes.length === 0 ? '' : ` (${changes.join('; ')})`}`
      if (level === 'project')
        said = `#${n} changed ${what}. This run keeps the settings of its start; to use the file as it is: ralph resume ${watch.change} --accept-config, or ralph finish ${watch.change} --accept-config`
      else
        await warn(
          'config_changed',
          `${what} was changed while #${n} ran. It is outside the repository and stays; the next start asks you first (--accept-config)`,
        )
    }
    last = { seen: { ...seen, user: keptFile(now.user), said }, n }
    if (said !== seen.said || now.user.sha !== seen.user.sha) await write(last.seen)
  }

  const tellKept = async (): Promise<void> => {
    const seen = last?.seen ?? (await readSeen(file))
    if (seen === undefined) return
    if (seen.said !== '') await warn('config_changed', seen.said)
    const now = gateFiles(worktree, watch.gates)
    const changed = Object.keys({ ...seen.gates, ...now }).filter((name) => seen.gates[name] !== now[name])
    // Whose story is that very file would hear it again with each attempt.
    const news = changed.filter((name) => !told.has(name))
    for (const name of news) told.add(name)
    if (news.length > 0)
      await warn('gate_changed', `#${last?.n ?? 0} changed what a gate runs: ${news.join(', ')}`)
    last = { seen: { ...seen, said: '', gates: now }, n: last?.n ?? 0 }
    if (seen.said !== '' || changed.length > 0) await write(last.seen)
  }

  return {
    ...checkpoints,
    ensure: async (storyId, byHand) => {
      const ensured = await checkpoints.ensure(storyId, byHand)
      await remember()
      return ensured
    },
    keep: async (n, mayBeSaved) => {
      await compare(n)
      return await checkpoints.keep(n, mayBeSaved)
    },
    save: async (storyId, message, judged, about) => {
      await compare(last?.n ?? 0)
      const saved = await checkpoints.save(storyId, message, judged, about)
      if (saved.refused === undefined) await tellKept()
      return saved
    },
    finish: async (choice, message) => {
      const before = await readSettingsFile(watch.home)
      const loops = await changedBy(common, 'project', (await readSettingsFile(worktree)).sha)
      const report = await checkpoints.finish(choice, message)
      const after = await readSettingsFile(watch.home)
      // Merged with the user's own, it is not what any iteration wrote, but has their lines.
      if (loops !== undefined && after.sha !== before.sha) await distrust(common, 'project', after.sha, loops)
      return report
    },
  }
}

/** There is none of a run that was killed before its first attempt. */
async function readSeen(file: string): Promise<Seen | undefined> {
  return readRecord(file, seenSchema())
}
