// One turn of a real CLI through the Agent port, against the scripted model server.
import { join } from 'node:path'
import { expect } from 'vitest'
import type { AgentTask } from '../../../src/ports.ts'
import type { Bench, Worked } from '../../agents/kit.ts'
import { pointedAt, realAgent, type RealAgent } from '../../model-stub/real-agents.ts'
import type { ModelServer } from '../../model-stub/server.ts'

export interface Extra {
  readonly prompt?: string
  readonly env?: Readonly<Record<string, string>>
  readonly passThrough?: readonly string[]
  readonly idleTimeoutMs?: number
  readonly timeoutMs?: number
  /** Talks to it by ACP, started so. */
  readonly acpCommand?: string
  readonly model?: string
  /** Where the program is, if not where it was installed. */
  readonly bin?: string
}

export async function runReal(
  kit: Bench,
  name: RealAgent,
  server: ModelServer,
  extra: Extra,
): Promise<Worked> {
  const pointed = pointedAt(name, server.url, join(kit.cwd, '..', 'home'))
  const env = Object.fromEntries(
    Object.entries({ ...pointed.env, ...extra.env }).filter(([, value]) => value !== ''),
  )
  const model = extra.model ?? pointed.model
  const task: Partial<AgentTask> = {
    ...(model !== undefined && { model }),
    ...(extra.prompt !== undefined && { prompt: extra.prompt }),
    ...(extra.idleTimeoutMs !== undefined && { idleTimeoutMs: extra.idleTimeoutMs }),
    ...(extra.timeoutMs !== undefined && { timeoutMs: extra.timeoutMs }),
  }
  return await kit.work(extra.acpCommand === undefined ? name : 'acp', {
    options: {
      passThrough: extra.passThrough ?? pointed.passThrough,
      graceMs: 3000,
      env: { ...env, PATH: `${extra.bin ?? realAgent(name).bin}:${process.env['PATH'] ?? ''}` },
      ...(extra.acpCommand !== undefined && { command: extra.acpCommand }),
    },
    task,
  })
}

export function expectNothingLeft({ ended, alive, temporary }: Worked): void {
  expect(ended.survivors).toEqual([])
  expect(alive).toEqual([])
  expect(temporary).toEqual([])
}
