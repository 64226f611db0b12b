// Programs that read the reference's state file must read ours without surprise: their reading rules, written anew.
import { describe, expect, test } from 'vitest'
import { toStateFile } from '../../src/core/state-snapshot.ts'
import type { StateFile } from '../../src/core/state-file.ts'
import { reduce, replay } from '../../src/core/loop.ts'
import { initialState } from '../../src/core/state.ts'
import type { Deed } from './world.ts'
import { good, play, settings } from './world.ts'

const failed: Deed = { ...good, promise: 'failed' }

function running(): StateFile {
  const { events } = play({ settings, tasks: [1, 1], deeds: [] })
  const until = events.findIndex((event) => event.type === 'iteration.started' && event.n === 2)
  return toStateFile(replay(initialState('demo'), events.slice(0, until + 1)))
}

const files: Record<string, StateFile> = {
  running: running(),
  done: toStateFile(play({ settings, tasks: [1, 1], deeds: [] }).state),
  stuck: toStateFile(play({ settings, tasks: [1], deeds: [failed, failed, failed, failed] }).state),
  stalled: toStateFile(
    play({ settings: { ...settings, stall_threshold: 1 }, tasks: [1], deeds: [failed] }).state,
  ),
  stopped: toStateFile(play({ settings, tasks: [1], deeds: [{ ...good, stop: true }] }).state),
}

/** The MCP server: a text block; a null task crashes it, an unknown change_id is "not found". */
function mcpText(text: string, changeId: string): string {
  const state = JSON.parse(text) as Record<string, unknown>
  if (state['change_id'] !== changeId) return `No Ralph loop found for: ${changeId}`
  const task = (state['task'] as string).slice(0, 60)
  const started = (state['started_at'] as string).split('+')[0] ?? ''
  if (Number.isNaN(new Date(started.replace('Z', '')).getTime())) throw new Error('no duration')
  return `${changeId}\n  Status: ${String(state['status'])}\n  Iteration: ${String(state['current_iteration'])}/${String(state['max_iterations'])}\n  Task: ${task}`
}

/** The status line: only these words are shown. */
function statusLine(text: string): string {
  const state = JSON.parse(text) as { status: string; current_iteration?: number; max_iterations?: number }
  return ['running', 'done', 'stuck', 'stopped'].includes(state.status)
    ? `${state.status} ${state.current_iteration ?? 0}/${state.max_iterations ?? 0}`
    : ''
}

/** The GUI: hides a loop with a status it does not know, counts commits, and needs `ended` of every iteration. */
function guiRow(text: string): { title: string; commits: number; last: string; pid: number } | undefined {
  const state = JSON.parse(text) as StateFile
  if (!['starting', 'running', 'stuck', 'stalled', 'done', 'stopped'].includes(state.status)) return undefined
  const last = state.iterations.at(-1)
  return {
    title: `Ralph: ${state.worktree_name}`,
    commits: state.iterations.reduce((sum, iteration) => sum + iteration.commits.length, 0),
    last: last === undefined ? '' : (last.ended.split('T')[1]?.split('+')[0] ?? ''),
    pid: state.terminal_pid,
  }
}

describe('old readers', () => {
  test.each(Object.entries(files))('%s: MCP, status line and GUI read it', (status, file) => {
    const text = JSON.stringify(file)
    expect(file.status).toBe(status)
    expect(mcpText(text, 'demo')).toContain(
      `Status: ${status}\n  Iteration: ${file.current_iteration}/${file.max_iterations}`,
    )
    expect(mcpText(text, 'other')).toBe('No Ralph loop found for: other')
    expect(statusLine(text)).toBe(
      status === 'stalled' ? '' : `${status} ${file.current_iteration}/${file.max_iterations}`,
    )
    expect(guiRow(text)).toMatchObject({ title: 'Ralph: w', pid: 1 })
  })

  test('the open iteration stays out of the history, so that every entry has its end', () => {
    expect(files['running']?.current).toMatchObject({ n: 2 })
    expect(files['running']?.iterations.map((iteration) => iteration.n)).toEqual([1])
  })

  test('waiting and the human’s turn are further fields, never a seventh status', () => {
    const limit: Deed = { ...good, ending: 'limit', promise: 'none' }
    const { events } = play({ settings, tasks: [1], deeds: [limit] })
    const until = events.findIndex((event) => event.type === 'waiting')
    const waiting = toStateFile(
      events.slice(0, until + 1).reduce((state, event) => reduce(state, event).state, initialState('demo')),
    )
    expect(waiting).toMatchObject({ status: 'running', waiting_for: 'limit' })
    const manual = toStateFile(
      play({ settings: { ...settings, done_criteria: 'manual' }, tasks: [1], deeds: [good] }).state,
    )
    expect(manual).toMatchObject({ status: 'stopped', stop_reason: 'human' })
  })
})
