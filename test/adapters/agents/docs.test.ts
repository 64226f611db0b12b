// The table of docs/agent-tests.md names every program of the kit, and no other; docs/agents.md every kind of agent.
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { specOf } from '../../../src/config/options.ts'
import { agentKinds } from '../../../src/adapters/agents/table.ts'

const root = resolve(import.meta.dirname, '../../..')
const read = (name: string): string => readFileSync(join(root, 'docs', name), 'utf8')

it('docs/agent-tests.md has a row for every misbehaving agent', () => {
  const helpers = ['kit.ts', 'claude-lines.mjs', 'acp-lines.mjs']
  const kit = readdirSync(join(root, 'test/agents')).filter((name) => !helpers.includes(name))
  const named = [...read('agent-tests.md').matchAll(/`([\w-]+\.(?:sh|mjs))`/g)].map(([, name]) => name)
  expect(named).toHaveLength(kit.length)
  expect(new Set(named)).toEqual(new Set(kit))
})

it('docs/agents.md has a row for every kind of agent', () => {
  for (const name of Object.keys(agentKinds)) expect(read('agents.md')).toContain(`| \`${name}\` |`)
})

it('the names that --agent takes are the kinds there are', () => {
  expect(new Set(specOf('agent').choices)).toEqual(new Set(Object.keys(agentKinds)))
})
