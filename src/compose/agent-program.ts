// The program of `--agent-command`, where it is surely not there: known before anything is touched.
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { isProgram } from '../adapters/process/on-path.ts'
import type { Config } from '../config/options.ts'
import type { Settings } from '../core/event.ts'
import { RalphError } from '../core/error.ts'
import { noProgram } from './programs.ts'
import type { Fault, Place } from './programs.ts'

type Wish = Pick<Config, 'agent_command' | 'agent_env'>

/** Exit 2: what was typed or configured is wrong. Exit 6 is for an agent that goes away later. */
export async function refuseMissingAgent(
  config: Wish,
  { agents }: Pick<Settings, 'agents'>,
  place: Place,
): Promise<void> {
  if (!agents.includes('command') && !agents.includes('acp')) return
  const fault = await missingAgent(config, place)
  if (fault === undefined) return
  throw new RalphError('config', fault.detail, { hint: `Nothing was touched. ${fault.fix}` })
}

export async function missingAgent(
  { agent_command: command, agent_env: own }: Wish,
  { cwd, env }: Place,
): Promise<Fault | undefined> {
  if (command === undefined) return undefined
  const says = (why: string, fix: string): Fault => ({
    detail: `The agent \`${command}\` cannot run: ${why}.`,
    fix,
  })
  const [path] = /^[\w.@+-]*\/[\w.@+/-]+(?=$|\s)/.exec(command.trim()) ?? []
  if (path !== undefined) {
    const file = resolve(cwd, path)
    if (!existsSync(file))
      return says(
        `there is no file ${path}${path.startsWith('/') ? '' : `, seen from the repository's root`}`,
        'Write it, or change --agent-command.',
      )
    if (!statSync(file).isFile()) return says(`${path} is not a program`, 'Change --agent-command.')
    return isProgram(file) ? undefined : says(`${path} is not executable`, `Type: chmod +x ${path}`)
  }
  const missing = await noProgram(command, { cwd, env: { ...env, ...own } })
  if (missing === undefined) return undefined
  const { word, near, meant } = missing
  return says(
    `there is no program ${word} on PATH`,
    near === undefined
      ? `Install ${word}, or change --agent-command.`
      : `Did you mean ${near}? Then: --agent-command "${meant}"`,
  )
}
