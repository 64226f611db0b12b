// The built-in demo: a scripted program that edits files like an agent would, without a key, a network or a model.
import { demoProgram } from './demo-program.ts'
import type { AgentKind } from './kind.ts'

export const demo: AgentKind = {
  speaks: 'text',
  keys: [],
  launch: ({ prompt }) => ({
    file: process.execPath,
    args: ['--input-type=module', '-e', demoProgram],
    env: {},
    input: prompt,
  }),
  listen: () => ({ hear: () => [] }),
}
