// One line for a status bar, from the state files alone: drawn every few seconds, so it asks git nothing and loads next to nothing.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { lastSign } from '../adapters/files/heartbeat.ts'
import { runPaths, stateFile } from '../adapters/files/paths.ts'
import { worktreesOf } from '../adapters/git/formats/linked-trees.ts'
import { isTaken } from '../adapters/process/pid.ts'
import { isRecord, readJson } from '../core/json.ts'
import { briefOf, freshnessOf, isOver, numberIn } from '../core/loop-brief.ts'
import type { LoopBrief } from '../core/loop-brief.ts'
import { storyStatus } from '../core/story.ts'
import { parseTasks } from '../core/tasks.ts'
import type { StatusLine } from '../ui/app.ts'
import { statusLineText } from '../ui/print/status-line.ts'
import type { LineLoop } from '../ui/print/status-line.ts'

/** What ended longer ago is no news. */
const newsMs = 24 * 60 * 60_000

interface Found extends LineLoop {
  readonly worktree: string
  readonly signMs: number
}

/** The loop that runs in this work tree, else one that runs in another, else what came last. Whatever cannot be read is not there. */
export function statusLineOf(folder: string, nowMs: number): StatusLine {
  const place = placeOf(folder)
  const found =
    place === undefined ? [] : worktreesOf(place).map((tree) => loopIn(place.gitCommonDir, tree, nowMs))
  const loops = found.filter((loop) => loop !== undefined)
  const isOn = ({ freshness }: Found): boolean => freshness === 'alive' || freshness === 'stale'
  const running = loops.filter(isOn)
  const latest = loops.filter(({ signMs }) => nowMs - signMs < newsMs).toSorted((a, b) => b.signMs - a.signMs)
  const here = loops.find(({ worktree }) => worktree === place?.worktree)
  const chosen =
    (here !== undefined && isOn(here) ? here : undefined) ??
    running.toSorted((a, b) => b.signMs - a.signMs)[0] ??
    (here !== undefined && latest.includes(here) ? here : latest[0])
  if (chosen === undefined) return { text: '', running: 0 }
  const { signMs, ...loop } = chosen
  const text = statusLineText(loop, { nowMs, silentMs: nowMs - signMs, others: running.length - 1 })
  return { text, running: running.length, loop }
}

/** As git finds them, for the usual repository; any other has no line. */
function placeOf(folder: string): { worktree: string; gitCommonDir: string } | undefined {
  try {
    for (let worktree = resolve(folder); ; worktree = dirname(worktree)) {
      const at = join(worktree, '.git')
      if (existsSync(at)) return { worktree, gitCommonDir: commonOf(gitDirOf(worktree)) }
      if (worktree === dirname(worktree)) return undefined
    }
  } catch {
    return undefined
  }
}

function gitDirOf(worktree: string): string {
  const at = join(worktree, '.git')
  if (statSync(at).isDirectory()) return at
  const told = readFileSync(at, 'utf8').replace(/^gitdir: /, '')
  return resolve(worktree, told.trim())
}

function commonOf(gitDir: string): string {
  const common = join(gitDir, 'commondir')
  return existsSync(common) ? resolve(gitDir, readFileSync(common, 'utf8').trim()) : gitDir
}

/** On the run's branch: boxes that were opened again, or stories that were added, since it was done; else nothing. */
function planIn(
  worktree: string,
  { change_id: change, updated_at: ended }: LoopBrief,
): Pick<LineLoop, 'stories_done' | 'stories_total' | 'stories_open'> | undefined {
  const head = readFileSync(join(gitDirOf(worktree), 'HEAD'), 'utf8').trim()
  if (head !== `ref: refs/heads/ralph/${change}`) return undefined
  const file = join(worktree, 'openspec', 'changes', basename(change), 'tasks.md')
  const stats = statSync(file, { throwIfNoEntry: false })
  if (stats === undefined || stats.mtimeMs <= Date.parse(ended)) return undefined
  const { stories } = parseTasks([{ file: 'tasks.md', text: plainText(file) }])
  const open = stories.filter((story) => storyStatus(story) === 'open').length
  const done = stories.filter((story) => storyStatus(story) === 'done').length
  return open === 0 ? undefined : { stories_done: done, stories_total: stories.length, stories_open: open }
}

function loopIn(gitCommonDir: string, worktree: string, nowMs: number): Found | undefined {
  try {
    const path = stateFile(worktree)
    const file = readJson(plainText(path))
    const brief = briefOf(file, basename(worktree))
    if (brief === undefined || !isRecord(file)) return undefined
    const { sign } = runPaths(gitCommonDir, basename(brief.change_id))
    const signMs = lastSign(path, sign)
    const pid = numberIn(file, 'terminal_pid')
    const looked = freshnessOf({
      isOver: isOver(brief),
      isThere: pid === 0 ? undefined : isTaken(pid),
      signAgeMs: nowMs - signMs,
      // Only ralph gives signs between two iterations.
      ...(brief.written_by === 'wt-tools' && { patienceMs: Infinity }),
    })
    const freshness = file['died'] === true ? 'dead' : looked
    return { ...brief, ...(brief.status === 'done' && planIn(worktree, brief)), freshness, worktree, signMs }
  } catch {
    // None there, or none that can be read.
    return undefined
  }
}

/** A pipe would be waited for, and a device has no end. Throws, as where there is none. */
function plainText(path: string): string {
  const stats = statSync(path)
  if (!stats.isFile() || stats.size > mostBytes) throw new Error(`${path} is not a plain file of some size`)
  return readFileSync(path, 'utf8')
}

const mostBytes = 16 * 1024 * 1024
