// The agent that comes next: its folders, and its cage, which is made while ralph still has other things to do.
import type { AgentComing } from '../../ports.ts'
import { holdCage, type Held } from '../process/cage-held.ts'
import type { Cage, Inmate } from '../process/cage.ts'
import type { Marker } from '../process/table.ts'
import { makeTemp, removeTemp } from '../process/temp.ts'

export interface Coming {
  readonly n: number
  readonly agent: string
  readonly tempDir: string
  /** Of the way to ralph's tools. */
  readonly claimsFolder: string | undefined
  readonly held: Promise<Held | undefined>
  /** Of its cage, unless it has begun in it. */
  leave(): Promise<void>
}

/** Undefined where no agent like it was there before. */
export function comingAgent(
  { n, agent, env, offersClaims }: AgentComing,
  cage: Cage,
  how: {
    readonly user: NodeJS.ProcessEnv
    readonly marker: Marker
    readonly keepsInput: boolean
    inmate(tempDir: string, claimsFolder: string | undefined): Inmate
  },
): Coming | undefined {
  if (!cage.knows(agent)) return undefined
  const runId = env['RALPH_RUN_ID'] ?? ''
  const tempDir = makeTemp(runId, how.user)
  const claimsFolder = offersClaims ? makeTemp(runId, how.user) : undefined
  const expected = cage.expect(how.inmate(tempDir, claimsFolder))
  const input = how.keepsInput ? undefined : ''
  const held =
    expected === undefined
      ? Promise.resolve(undefined)
      : holdCage(expected, how.marker, { runId, input, stdout: 'socket' }).catch(() => undefined)
  return {
    n,
    agent,
    tempDir,
    claimsFolder,
    held,
    async leave() {
      await (await held)?.end()
      await expected?.drop()
    },
  }
}

/** It does not come. */
export async function dismissed(coming: Coming | undefined): Promise<void> {
  if (coming === undefined) return
  await coming.leave()
  for (const folder of [coming.tempDir, coming.claimsFolder])
    if (folder !== undefined) await removeTemp(folder)
}
