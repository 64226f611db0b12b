// The desktop is told when a loop has ended or asks something: always with --notify, on a terminal after a while.
import { desktopOf, isNoticingTerminal, showNotice } from '../adapters/process/desktop.ts'
import type { Notice } from '../adapters/process/desktop.ts'
import { ownEnv } from '../adapters/process/on-path.ts'
import type { Config } from '../config/options.ts'
import type { LoopEvent } from '../core/event.ts'
import type { Human } from '../ports.ts'
import type { Site } from './site.ts'

export interface Desktop {
  /** The same person; before a question the desktop says that there is one. */
  readonly human: (human: Human) => Human
  /** A warning, empty when there is none. */
  readonly atEnd: (event: Extract<LoopEvent, { type: 'complete' }>) => Promise<string>
}

/** Who waits for a shorter loop is looking. */
const lookingMs = 30_000

export function desktopFor(
  site: Site,
  change: string,
  { notify, json }: Pick<Config, 'notify' | 'json'>,
): Desktop {
  const program = desktopOf(ownEnv(site.env, site.git.worktree))
  const isByDefault = notify === undefined && site.isTerminal && !json && !isNoticingTerminal(site.env)
  const began = site.clock.monotonic()
  let hasAsked = false
  const show = async (notice: Notice): Promise<string> => {
    const isDue = notify === true || (isByDefault && site.clock.monotonic() - began >= lookingMs)
    if (!isDue) return ''
    if (program === undefined)
      return notify === true ? '--notify: this system has no program for it (notify-send, osascript)' : ''
    const failed = await showNotice(program, notice, { cwd: site.git.worktree, env: site.env })
    return failed === '' || notify !== true ? '' : `--notify failed: ${failed}`
  }
  const asks = (text: string): void => {
    // Shown beside the question, which must not wait for it; what fails is told at the end.
    void show({ title: `ralph: ${change} needs you`, text })
  }
  return {
    human: (human) => ({
      choose: (question, stop) => {
        hasAsked = true
        if (site.isTerminal) asks(oneLine(question.summary) || 'The loop is over. Where should its work go?')
        return human.choose(question, stop)
      },
      isDone: (task, stop) => {
        if (site.isTerminal) asks(`The agent says that this is done: ${oneLine(task)}`)
        return human.isDone(task, stop)
      },
    }),
    atEnd: async ({ status, stop_reason: why, reason }) => {
      // Who stopped it, or has just answered, knows.
      if (why === 'signal' || (hasAsked && site.isTerminal)) return ''
      const word = why === 'human' ? 'needs you' : status
      return show({ title: `ralph: ${change} ${word}`, text: oneLine(reason) })
    },
  }
}

function oneLine(text: string): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  return line.length > 200 ? `${line.slice(0, 199)}…` : line
}
