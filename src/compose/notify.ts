// Tells the world that a loop has ended: the desktop, a command of the user's and a webhook; a failing one is only a warning.
import { tellShell } from '../adapters/process/shell.ts'
import type { Config } from '../config/options.ts'
import type { LoopEvent } from '../core/event.ts'
import type { Desktop } from './desktop.ts'
import type { Site } from './site.ts'

const limitMs = 10_000

export function notifications(
  config: Config,
  site: Site,
  desktop: Desktop,
): (event: LoopEvent) => Promise<readonly string[]> {
  return async (event) => {
    if (event.type !== 'complete') return []
    const body = JSON.stringify(event)
    const { notify_command: command, webhook } = config
    const told = await Promise.all([
      desktop.atEnd(event),
      command === undefined ? '' : tellCommand(command, body, site),
      webhook === undefined ? '' : tellWebhook(webhook, body),
    ])
    return told.filter((warning) => warning !== '')
  }
}

async function tellCommand(command: string, body: string, site: Site): Promise<string> {
  const { failed, said } = await tellShell(command, {
    cwd: site.git.worktree,
    env: site.env,
    input: `${body}\n`,
    timeoutMs: limitMs,
  })
  return failed === '' ? '' : `--notify-command failed (${failed}): ${said || command}`
}

async function tellWebhook(url: string, body: string): Promise<string> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(limitMs),
    })
    return response.ok ? '' : `--webhook answered ${response.status}`
  } catch (error) {
    return `--webhook could not be reached: ${error instanceof Error ? error.message : String(error)}`
  }
}
