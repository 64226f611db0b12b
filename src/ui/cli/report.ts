// `ralph report`: a run as a document, on the screen, into a file, or opened where the desktop opens such files.
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join, resolve } from 'node:path'
import { RalphError } from '../../core/error.ts'
import type { RunReport } from '../../core/report.ts'
import type { StatusReport } from '../app.ts'
import type { Paint } from '../io.ts'
import type { Context } from './context.ts'

type ReportFormat = 'text' | 'md' | 'html' | 'json'

interface ReportOptions {
  readonly format: ReportFormat | undefined
  readonly output: string | undefined
  readonly open: boolean
  readonly force: boolean
}

export async function showReport(
  { io, app }: Context,
  change: string | undefined,
  { format: wanted, output, open, force }: ReportOptions,
): Promise<void> {
  const format = wanted ?? (output === undefined ? (open ? 'html' : 'text') : formatOf(output))
  const { observe } = await app()
  const run = await observe.report(change)
  // A document in a file is as wide as a page.
  const page = { format, columns: output === undefined && !open ? (io.stdout.columns ?? 100) : 100 }
  const { paintFor } = await import('../io.ts')
  const paint = paintFor(io.stdout, output === undefined && !open ? io.env : { NO_COLOR: '1' })
  const text = await written(run, page, paint)
  if (output === undefined && !open) {
    const { legible } = await import('../vocabulary.ts')
    if (format !== 'text') return void io.stdout.write(text)
    const steps = await nextLines(await observe.status(run.change_id), { columns: page.columns, paint })
    return void io.stdout.write(legible(text + steps, io.env))
  }
  const file =
    output === undefined
      ? join(await mkdtemp(join(tmpdir(), 'ralph-report-')), `report.${format === 'text' ? 'txt' : format}`)
      : resolve(io.cwd, output)
  if (!force) await refuseOther(file)
  await writeFile(file, text).catch((error: unknown) => cannotWrite(file, error))
  io.stdout.write(`The report of ${run.change_id} is in ${file}\n`)
  if (open && !(await opened(file, io.env)))
    io.stderr.write(`It could not be opened from here: open ${file} yourself.\n`)
}

/** A document is for others; whoever reads it here can type what is next. */
async function nextLines(
  [status]: readonly StatusReport[],
  sheet: { readonly columns: number; readonly paint: Paint },
): Promise<string> {
  if (status === undefined) return ''
  const [{ isHeld, nextSteps }, { stepLines }, { parkedRows }, { factLines }] = await Promise.all([
    import('../print/status-next.ts'),
    import('../print/step-lines.ts'),
    import('../print/status.ts'),
    import('../print/facts.ts'),
  ])
  const [, ...ways] = isHeld(status) ? parkedRows(status.parked) : []
  const lines = [
    ...factLines(ways, { ...sheet, width: 7 }),
    ...stepLines(nextSteps(status), { indent: 2, column: 10 }, sheet),
  ]
  return lines.length === 0 ? '' : `\n${lines.join('\n')}\n`
}

const formats: Readonly<Record<string, ReportFormat>> = {
  '.html': 'html',
  '.htm': 'html',
  '.md': 'md',
  '.markdown': 'md',
  '.json': 'json',
  '.txt': 'text',
  '.log': 'text',
  '': 'text',
}

function formatOf(file: string): ReportFormat {
  const ending = extname(file)
  const format = formats[ending.toLowerCase()]
  if (format !== undefined) return format
  throw new RalphError('usage', `No report can be written as ${ending} (${file}).`, {
    hint: 'Let the name end with .md, .html, .json or .txt, or say what it is with --format.',
  })
}

/** What is there already is written over only if it is a report: the name may be that of a file of the user's by mistake. */
async function refuseOther(file: string): Promise<void> {
  const before = await stat(file).catch(() => undefined)
  if (before?.isFile() !== true || before.size === 0) return
  const text = await readFile(file, 'utf8').catch(() => '')
  if (reportMarks.some((mark) => mark.test(text))) return
  throw new RalphError('usage', `${file} already exists and is not a report of ralph's.`, {
    hint: 'Nothing was written. Name another file, or overwrite it with --force.',
  })
}

/** How each format begins. */
const reportMarks = [
  /^# ralph: /,
  /^<!doctype html>[^]{0,500}<title>ralph: /,
  /^\{\n {2}"change_id": "[^"]*",\n {2}"status": /,
  /^\S+ {3}\S \w+\n {2}\d+ of \d+ stor(?:y|ies), /,
]

function cannotWrite(file: string, cause: unknown): never {
  const { code = '' } = cause as NodeJS.ErrnoException
  const why = reasons[code] ?? (cause instanceof Error ? cause.message : String(cause))
  throw new RalphError('usage', `The report cannot be written to ${file}: ${why}.`, {
    hint: 'Nothing was written. Name another file with --output, in a folder that is there.',
    cause,
  })
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such folder',
  ENOTDIR: 'a part of its path is a file, not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'you may not write there',
  EROFS: 'nothing can be written there',
  ENOSPC: 'the disk is full',
}

async function written(
  run: RunReport,
  { format, columns }: { readonly format: ReportFormat; readonly columns: number },
  paint: Paint,
): Promise<string> {
  if (format === 'json') return `${JSON.stringify(run, undefined, 2)}\n`
  if (format === 'html') return (await import('../print/report-html.ts')).reportHtml(run)
  if (format === 'md') return (await import('../print/report-md.ts')).reportMarkdown(run)
  return (await import('../print/report-text.ts')).reportText(run, columns, paint)
}

/** The desktop's own way to open a file; false where it has none. */
function opened(file: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const command = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(command, [file], { stdio: 'ignore', env })
  return new Promise((done) => {
    child.on('error', () => done(false))
    child.on('close', (code) => done(code === 0))
  })
}
