// What agents print, whatever it is: no parser throws, none hangs, and a promise is found only where one is.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lineParser, textParser } from '../../src/adapters/agents/output.ts'
import { agentNames } from '../../src/config/option.ts'
import type { AgentRun } from '../../src/adapters/agents/kind.ts'
import { agentKinds } from '../../src/adapters/agents/table.ts'
import { startTurn } from '../../src/adapters/agents/turn.ts'
import type { AgentEnded } from '../../src/core/event.ts'
import type { AgentSignal } from '../../src/ports.ts'
import {
  anyBytes,
  documentsOf,
  isUnspoilt,
  jsonOf,
  recorded,
  seeded,
  settings,
  twisted,
  wounded,
} from './foreign.ts'

const run: AgentRun = {
  prompt: 'Do it.\nThen say so.\n',
  cwd: '/tmp',
  model: undefined,
  command: 'x',
  passThrough: [],
  isRoot: false,
}

/** As an agent's turn hears it, in pieces that are cut anywhere. */
function hear(
  name: (typeof agentNames)[number],
  bytes: Buffer,
  cut: number,
): { ended: AgentEnded; signals: AgentSignal[] } {
  const kind = agentKinds[name]
  const signals: AgentSignal[] = []
  const turn = startTurn(
    kind,
    (signal) => signals.push(signal),
    () => false,
  )
  const ear =
    kind.speaks === 'lines'
      ? lineParser(
          kind,
          kind.listen(run),
          turn,
          (signal) => signals.push(signal),
          () => undefined,
        )
      : textParser(run.prompt, turn)
  for (let start = 0; start < bytes.length; start += cut) ear.feed(bytes.subarray(start, start + cut))
  ear.end()
  return {
    ended: turn.end(
      { exitCode: 0, leftBehind: 0, survivors: [] },
      bytes.subarray(0, 500).toString('latin1'),
      0,
    ),
    signals,
  }
}

const streams: Readonly<Record<(typeof agentNames)[number], Buffer[]>> = {
  claude: recorded('streams/claude'),
  codex: recorded('streams/codex'),
  opencode: recorded('streams/opencode'),
  gemini: recorded('streams/gemini'),
  command: [Buffer.from('Working.\n- **<promise>COMPLETE</promise>**\n')],
  acp: [
    Buffer.from(
      acpLines()
        .map((line) => JSON.stringify(line))
        .join('\n'),
    ),
  ],
  demo: [Buffer.from('Working.\n<promise>FAILED: no</promise>\n')],
}

function acpLines(): unknown[] {
  const update = (change: object): object => ({
    jsonrpc: '2.0',
    method: 'session/update',
    params: { sessionId: 's', update: change },
  })
  return [
    { jsonrpc: '2.0', id: 1, result: { protocolVersion: 1, agentInfo: { name: 'x' } } },
    {
      jsonrpc: '2.0',
      id: 2,
      result: {
        sessionId: 's',
        models: { currentModelId: 'm' },
        configOptions: [{ category: 'model', id: 'm', currentValue: 'x' }],
      },
    },
    update({
      sessionUpdate: 'agent_message_chunk',
      content: { type: 'text', text: 'Fine.\n<promise>COMPLETE</promise>\n' },
    }),
    update({
      sessionUpdate: 'tool_call',
      toolCallId: 't',
      title: 'run',
      status: 'pending',
      rawInput: { command: 'ls' },
    }),
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't', status: 'completed' }),
    {
      jsonrpc: '2.0',
      id: 7,
      method: 'session/request_permission',
      params: {
        toolCall: { toolCallId: 't', title: 'run' },
        options: [{ optionId: 'a', kind: 'allow_once' }],
      },
    },
    update({ sessionUpdate: 'usage_update', cost: { amount: 1, currency: 'USD' } }),
    { jsonrpc: '2.0', id: 4, result: { stopReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 2 } } },
    { jsonrpc: '2.0', id: 4, error: { code: 429, message: 'limit; resets at 5pm' } },
  ]
}

/** No size of a signal may grow with what a line holds: they go into events, and onto a screen. */
function isBounded({ signals, ended }: ReturnType<typeof hear>): boolean {
  return (
    signals.every((signal) => JSON.stringify(signal).length < 200_000) &&
    JSON.stringify(ended).length < 500_000
  )
}

describe('fuzz: the streams of agents', () => {
  test.each(agentNames)(`%s: no bytes make it throw ${seeded}`, (name) => {
    const lines = documentsOf(streams[name])
    const input = fc.oneof(
      anyBytes,
      wounded(streams[name]),
      ...(lines.length === 0
        ? []
        : [
            fc
              .array(twisted(lines), { minLength: 1, maxLength: 4 })
              .map((twists) => Buffer.from(twists.map(jsonOf).join('\n'))),
          ]),
    )
    fc.assert(
      fc.property(input, fc.integer({ min: 1, max: 300 }), (bytes, cut) => {
        expect(isBounded(hear(name, bytes, Math.max(cut, Math.ceil(bytes.length / 500))))).toBe(true)
        expect(isUnspoilt()).toBe(true)
      }),
      settings(),
    )
  })

  test.each(agentNames)('%s: a line of 50 MB, with and without an end', (name) => {
    const begin = Buffer.from('{"type":"assistant","x":"')
    for (const [filler, end] of [
      ['x', ''],
      ['[{"a":', '\n{"type":"result"}\n'],
    ] as const) {
      const line = Buffer.concat([begin, Buffer.alloc(50 * 1024 * 1024, filler), Buffer.from(end)])
      expect(isBounded(hear(name, line, 1024 * 1024))).toBe(true)
    }
  })

  test.each(agentNames)("%s: a tool's input that is nested deeper than the stack", (name) => {
    const depth = 200_000
    const deep = `${'[{"command":'.repeat(depth)}1${'}]'.repeat(depth)}`
    const marked = streams[name]
      .flatMap((file) => file.toString('utf8').split('\n'))
      .filter((line) => /"(input|rawInput|command|arguments|args|parameters)":/.test(line))
    for (const line of marked) {
      const lines = ['input', 'rawInput', 'command', 'arguments', 'args', 'parameters'].map((key) =>
        line.replace(new RegExp(`"${key}":("[^"]*"|\\{[^}]*\\}|\\[[^\\]]*\\])`), `"${key}":${deep}`),
      )
      expect(isBounded(hear(name, Buffer.from(lines.join('\n')), 1024 * 1024))).toBe(true)
    }
  })
})
