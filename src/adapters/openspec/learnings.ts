// What agents leave for those who come after them: one file in ralph's private folder, which no revert touches.
import { closeSync, openSync, readSync } from 'node:fs'
import { dirname } from 'node:path'
import { tailOf } from '../../core/prompt-text.ts'
import { mkdir, writeFile } from '../files/now.ts'
import { lstatIfThere } from '../files/whole.ts'

const header = '# Learnings\n\nWritten by agents, read by the next ones. Short lines; newest last.\n'
const shownBytes = 32_000
const mostBytes = 1_000_000

/** Creates the file with its header; an existing one is left alone. */
export async function ensureLearnings(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  try {
    await writeFile(path, header, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** One more, on a line of its own. Where an agent has put something else in the file's place, it throws. */
export async function addLearning(path: string, text: string): Promise<void> {
  await ensureLearnings(path)
  const stats = await lstatIfThere(path)
  if (stats?.isFile() !== true) throw new Error(`${path} is not a file`)
  if (stats.size > mostBytes) throw new Error(`${path} has more than ${mostBytes} bytes`)
  await writeFile(path, `- ${text}\n`, { flag: 'a' })
}

/** Without the header, the newest 32 KB; '' when nobody has written anything yet. */
export async function readLearnings(path: string): Promise<string> {
  const text = (await readTail(path)).toString('utf8')
  const own = text.startsWith(header) ? text.slice(header.length) : text
  return tailOf(own.trim(), shownBytes, path)
}

/** Agents write here as they like: whatever it has become, a loop neither reads a gigabyte for it nor breaks over it. */
async function readTail(path: string): Promise<Buffer> {
  const stats = await lstatIfThere(path)
  if (stats?.isFile() !== true) return Buffer.alloc(0)
  // More than is shown, so that the cut is seen and said.
  const length = Math.min(stats.size, 2 * shownBytes)
  const handle = openSync(path, 'r')
  try {
    const buffer = Buffer.alloc(length)
    return buffer.subarray(0, readSync(handle, buffer, 0, length, stats.size - length))
  } finally {
    closeSync(handle)
  }
}
