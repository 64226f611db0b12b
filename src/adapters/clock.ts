// The only time in the system: wall clock for display, monotonic for durations.
import type { Clock } from '../ports.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  stamp(epochMs = Date.now()) {
    // Of a flood thousands fall into the same second.
    const second = Math.floor(writable(epochMs) / 1000)
    if (second !== last.second) last = { second, text: localIso(new Date(second * 1000)) }
    return last.text
  },
  until(epochMs, stop) {
    return new Promise((resolve) => {
      if (stop.aborted || epochMs <= Date.now()) {
        resolve()
        return
      }
      // A timer stands still while a laptop sleeps: look at the wall clock again every second.
      const timer = setInterval(
        () => {
          if (Date.now() >= epochMs) finish()
        },
        Math.min(1000, Math.max(10, epochMs - Date.now())),
      )
      const finish = (): void => {
        clearInterval(timer)
        stop.removeEventListener('abort', finish)
        resolve()
      }
      stop.addEventListener('abort', finish, { once: true })
    })
  },
  after(ms, call) {
    const timer = setTimeout(call, ms).unref()
    return () => clearTimeout(timer)
  },
}

let last = { second: Number.NaN, text: '' }

/** Years of four digits. A time of somebody else's making must never be what ends a loop. */
function writable(epochMs: number): number {
  return Number.isNaN(epochMs) ? 0 : Math.min(Math.max(epochMs, dayMs), year9999Ms)
}
const dayMs = 86_400_000
const year9999Ms = Date.UTC(9999, 11, 30)

/** `2026-02-09T14:03:22+01:00`: the only form that every reader of the state file handles. */
function localIso(date: Date): string {
  const offsetMin = -date.getTimezoneOffset()
  const local = new Date(date.getTime() + offsetMin * 60_000).toISOString().slice(0, 19)
  const pad = (value: number): string => String(value).padStart(2, '0')
  const size = Math.abs(offsetMin)
  return `${local}${offsetMin < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`
}
