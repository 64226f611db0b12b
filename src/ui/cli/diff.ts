// `ralph diff`: what an attempt had changed; a patch in a pipe, for a person on a terminal short, coloured and in a pager.
import { spawn } from 'node:child_process'
import type { AttemptDiff, DiffRequest } from '../app.ts'
import { isTerminal, paintFor, type Paint } from '../io.ts'
import { oneLine, clean } from '../print/text.ts'
import type { Context } from './context.ts'

export async function showDiff(
  context: Context,
  request: Omit<DiffRequest, 'form'>,
  { stat, json }: { readonly stat: boolean; readonly json: boolean },
): Promise<void> {
  const { io } = context
  const onScreen = isTerminal(io.stdout) && !json
  const { observe } = await context.app()
  const found = await observe.diff({ ...request, form: stat ? 'stat' : onScreen ? 'short' : 'patch' })
  const { patch, pager, change_id: change, n } = found
  if (json) {
    const shown = { change_id: change, ...(n !== undefined && { n }), patch }
    io.stdout.write(`${JSON.stringify(shown, undefined, 2)}\n`)
    return
  }
  // In a pipe stdout is the patch and nothing else.
  if (patch === '')
    io.stderr.write(
      n === undefined
        ? `The run of ${nameOf(found)} has saved no change.\n`
        : `${nameOf(found)} changed no file.\n`,
    )
  if (patch === '' || !onScreen) return void io.stdout.write(patch)
  const paint = paintFor(io.stdout, io.env)
  const text = `${paint.dim(`${nameOf(found)}${found.what === '' ? '' : `, ${oneLine(found.what)}`}`)}\n${patchText(patch, paint)}`
  if (!(await paged(text, pagerOf(io.env, pager), io.env))) io.stdout.write(text)
}

function nameOf({ change_id: change, n }: AttemptDiff): string {
  return n === undefined ? oneLine(change) : `#${String(n)} of ${oneLine(change)}`
}

/** As git chooses it, but for the repository's own settings: those an agent may have written. */
function pagerOf(env: NodeJS.ProcessEnv, configured: string): string {
  return env['GIT_PAGER'] ?? (configured || (env['PAGER'] ?? 'less'))
}

/** False where there is none to be had: then the text is written as it is. */
async function paged(text: string, pager: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  if (pager === '' || pager === 'cat' || env['TERM'] === 'dumb') return false
  const child = spawn('sh', ['-c', pager], {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: 'FRX', LV: '-c', ...env },
  })
  return new Promise((resolve) => {
    child.on('error', () => resolve(false))
    child.on('close', (code) => resolve(code !== 127 && code !== 126))
    // A pager that is left before it has read everything.
    child.stdin.on('error', () => undefined)
    child.stdin.end(text)
  })
}

function patchText(patch: string, paint: Paint): string {
  if (!paint.isColorSupported) return patch
  return patch
    .split('\n')
    .map((line) => {
      const shown = clean(line)
      if (shown.startsWith('+')) return paint.green(shown)
      if (shown.startsWith('-')) return paint.red(shown)
      return shown.startsWith('@@') ? paint.cyan(shown) : shown
    })
    .join('\n')
}
