// A real file system of a few megabytes, so that "the disk is full" is the kernel's own word.
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  rmdirSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Only root may mount, and not in every container. */
export const canMount = ((): boolean => {
  const folder = mkdtempSync(join(tmpdir(), 'ralph-mount-'))
  const mounted = mount(folder)
  if (mounted) umount(folder)
  rmdirSync(folder)
  return mounted
})()

function mount(folder: string): boolean {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder]).status === 0
}

function umount(folder: string): void {
  spawnSync('umount', ['-l', folder])
}

/** A folder on one, until the test is over. */
export function smallDisk(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ralph-disk-'))
  onTestFinished(() => rmdirSync(folder))
  mountUntilEnd(folder)
  return folder
}

/** Moves what is in the folder onto one. */
export function onSmallDisk(folder: string): void {
  const kept = `${folder}.kept`
  spawnSync('cp', ['-a', folder, kept])
  mountUntilEnd(folder)
  spawnSync('cp', ['-a', `${kept}/.`, folder])
  rmSync(kept, { recursive: true })
}

function mountUntilEnd(folder: string): void {
  if (!mount(folder)) throw new Error(`cannot mount on ${folder}`)
  onTestFinished(() => umount(folder))
}

/** Takes all the room there is, but for so many kilobytes. */
export function fill(file: string, leftKb: number): void {
  mkdirSync(join(file, '..'), { recursive: true })
  const open = openSync(file, 'w')
  const page = Buffer.alloc(4096)
  let size = 0
  try {
    for (;;) size += writeSync(open, page)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    closeSync(open)
  }
  truncateSync(file, size - leftKb * 1024)
}
