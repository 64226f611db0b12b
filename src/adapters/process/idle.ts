// Tells a run that does nothing from one that is only silent: a long test run prints nothing but burns CPU.
import { findAlive, type Quarry } from './reap.ts'

export interface IdleWatch {
  readonly quarry: Quarry
  /** 0 = off. */
  readonly idleTimeoutMs: number
  /** Monotonic. */
  lastOutput(): number
}

/** Looks now and then, so that the quarry is known. Calls `onIdle` once neither output nor work was seen for the time; returns how to stop watching. */
export function watchIdle(watch: IdleWatch, onIdle: () => void): () => void {
  const isOn = watch.idleTimeoutMs > 0
  const everyMs = isOn ? Math.min(Math.max(watch.idleTimeoutMs / 5, 20), longestPauseMs) : longestPauseMs
  let lastActivity = performance.now()
  let lastLook = lastActivity
  let cpuByPid = new Map<number, number>()

  const timer = setInterval(() => {
    const now = performance.now()
    const isBusy = hasWorked(now - lastLook)
    if (watch.lastOutput() > lastLook) lastActivity = watch.lastOutput()
    else if (isBusy) lastActivity = now
    lastLook = now
    if (!isOn || now - lastActivity < watch.idleTimeoutMs) return
    clearInterval(timer)
    onIdle()
  }, everyMs)

  const hasWorked = (sinceMs: number): boolean => {
    const alive = findAlive(watch.quarry)
    const burntMs = alive.reduce((sum, { pid, cpuMs }) => sum + cpuMs - (cpuByPid.get(pid) ?? cpuMs), 0)
    const hasNew = cpuByPid.size > 0 && alive.some(({ pid }) => !cpuByPid.has(pid))
    cpuByPid = new Map(alive.map(({ pid, cpuMs }) => [pid, cpuMs]))
    return hasNew || burntMs > sinceMs * idleShare
  }
  return () => clearInterval(timer)
}

const longestPauseMs = 10_000
/** An agent that waits for a server which never answers still runs its timers: OpenCode 1.18 burns 1.2 % so. */
const idleShare = 0.03
