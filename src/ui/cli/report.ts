// `ralph report`: a run as a document, on the screen, into a file, or opened where the desktop opens such files.
import { spawn } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join, resolve } from 'node:path'
import type { RunReport } from '../../core/report.ts'
import type { Context } from './context.ts'

type ReportFormat = 'text' | 'md' | 'html' | 'json'

interface ReportOptions {
  readonly format: ReportFormat | undefined
  readonly output: string | undefined
  readonly open: boolean
}

export async function showReport(
  { io, app }: Context,
  change: string | undefined,
  { format: wanted, output, open }: ReportOptions,
): Promise<void> {
  const run = await (await app()).observe.report(change)
  const format = wanted ?? (output === undefined ? (open ? 'html' : 'text') : formatOf(output))
  // A document in a file is as wide as a page.
  const page = { format, columns: output === undefined && !open ? (io.stdout.columns ?? 100) : 100 }
  const text = await written(run, page)
  if (output === undefined && !open) {
    const { legible } = await import('../vocabulary.ts')
    return void io.stdout.write(format === 'text' ? legible(text, io.env) : text)
  }
  const file =
    output === undefined
      ? join(await mkdtemp(join(tmpdir(), 'ralph-report-')), `report.${format === 'text' ? 'txt' : format}`)
      : resolve(io.cwd, output)
  await writeFile(file, text)
  io.stdout.write(`The report of ${run.change_id} is in ${file}\n`)
  if (open && !(await opened(file, io.env)))
    io.stderr.write(`It could not be opened from here: open ${file} yourself.\n`)
}

const formats: Readonly<Record<string, ReportFormat>> = {
  '.html': 'html',
  '.htm': 'html',
  '.md': 'md',
  '.markdown': 'md',
  '.json': 'json',
}

function formatOf(file: string): ReportFormat {
  return formats[extname(file).toLowerCase()] ?? 'text'
}

async function written(
  run: RunReport,
  { format, columns }: { readonly format: ReportFormat; readonly columns: number },
): Promise<string> {
  if (format === 'json') return `${JSON.stringify(run, undefined, 2)}\n`
  if (format === 'html') return (await import('../print/report-html.ts')).reportHtml(run)
  if (format === 'md') return (await import('../print/report-md.ts')).reportMarkdown(run)
  return (await import('../print/report-text.ts')).reportText(run, columns)
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
