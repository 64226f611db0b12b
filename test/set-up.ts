// Set-up of all tests. Temp folders are in memory where there is room: most of what the tests wait for is a disk that syncs.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'

const disk = '/dev/shm'
const prefix = 'ralph-tests-'
const neededBytes = 2 * 2 ** 30

/** RALPH_TEST_TMP names another folder, such as one on a disk: `RALPH_TEST_TMP=/tmp npm test`. */
export default function setUp(): (() => void) | undefined {
  leaveOutCertificates()
  const chosen = process.env['RALPH_TEST_TMP']
  if (chosen === undefined && !hasRoom()) return undefined
  sweep(chosen ?? disk)
  const folder = mkdtempSync(join(chosen ?? disk, `${prefix}${process.pid}-`))
  if (chosen === undefined && !runsPrograms(folder)) {
    rmSync(folder, { recursive: true })
    return undefined
  }
  // As /tmp: some tests go on as another user.
  chmodSync(folder, 0o1777)
  process.env['TMPDIR'] = folder
  return () => remove(folder)
}

/** Every Node that the tests start would read them first, for longer than many need for all their work. */
function leaveOutCertificates(): void {
  const extra = process.env['NODE_EXTRA_CA_CERTS']
  if (extra === undefined) return
  process.env['RALPH_TEST_CA_CERTS'] = extra
  delete process.env['NODE_EXTRA_CA_CERTS']
}

function hasRoom(): boolean {
  if (!existsSync(disk) || freemem() < neededBytes) return false
  const { bavail, bsize } = statfsSync(disk)
  return bavail * bsize >= neededBytes
}

/** Containers often forbid it there. */
function runsPrograms(folder: string): boolean {
  const program = join(folder, 'program')
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
  try {
    execFileSync(program)
    return true
  } catch {
    return false
  } finally {
    rmSync(program)
  }
}

/** What a run that was killed has left would else stay in memory until the next boot. */
function sweep(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) remove(join(parent, name))
  }
}

function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    // A small disk of a killed test is still mounted in it.
    console.warn(`${folder} stays: ${(error as Error).message}`)
  }
}
