// The report of a run as the summary of a GitHub Actions job.
import { appendFile } from 'node:fs/promises'
import type { Observe } from '../app.ts'
import type { Io } from '../io.ts'
import { reportMarkdown } from '../print/report-md.ts'

/** A summary that cannot be written is no reason to fail a job whose loop is done. */
export async function writeJobSummary(io: Io, observe: Observe, change: string): Promise<void> {
  const file = io.env['GITHUB_STEP_SUMMARY'] ?? ''
  if (io.env['GITHUB_ACTIONS'] !== 'true' || file === '') return
  try {
    await appendFile(file, `${reportMarkdown(await observe.report(change))}\n`)
  } catch (error) {
    io.stderr.write(`warning: the job's summary could not be written: ${(error as Error).message}\n`)
  }
}
