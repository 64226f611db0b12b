// What is mounted below a folder, as Linux tells it: whoever removes what lies there removes it where it comes from.
import { readFileSync } from 'node:fs'

/** Paths from the folder, one char per byte, the inner ones first; '' is the folder itself, and what is mounted twice is named twice. */
export function mountsBelow(folder: string): string[] {
  const top = Buffer.from(folder).toString('latin1')
  return mountPoints()
    .filter((point) => point === top || point.startsWith(`${top}/`))
    .map((point) => point.slice(top.length + 1))
    .sort()
    .reverse()
}

/** Other systems name them nowhere that can be read without a process. */
function mountPoints(): string[] {
  if (process.platform !== 'linux') return []
  const lines = readFileSync('/proc/self/mountinfo', 'latin1').split('\n')
  return lines.flatMap((line) => line.split(' ')[4]?.replace(/\\(\d{3})/g, byteOf) ?? [])
}

function byteOf(_: string, octal: string): string {
  return String.fromCharCode(Number.parseInt(octal, 8))
}
