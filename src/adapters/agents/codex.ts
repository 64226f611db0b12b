// Codex: `codex exec --json`.
import { endingOfError } from './failure.ts'
import { at, countAt, listAt, parseJson, shortInput, textAt } from './json.ts'
import type { ClaimClient } from './claim-server.ts'
import type { AgentFact, AgentKind } from './kind.ts'

export const codex: AgentKind = {
  program: 'codex',
  speaks: 'lines',
  keys: ['OPENAI_API_KEY', 'CODEX_API_KEY'],
  takesClaims: (passThrough) => (hasOwnRules(passThrough) ? 'not' : 'by word'),
  launch({ prompt, model, passThrough, claims }) {
    return {
      file: 'codex',
      args: [
        'exec',
        '--json',
        ...(hasOwnRules(passThrough) ? [] : ['--dangerously-bypass-approvals-and-sandbox']),
        '--skip-git-repo-check',
        ...(model === undefined ? [] : ['-m', model]),
        ...(claims === undefined ? [] : serverSettings(claims)),
        ...passThrough,
        '-',
      ],
      env: {},
      input: prompt,
    }
  },
  listen: () => {
    const running = new Set<string>()
    return {
      hear: (line) => {
        const ended = endedCommand(line)
        if (ended !== undefined) {
          running.delete(ended)
          return []
        }
        const event = parseJson(line)
        const facts = parseCodex(event)
        const id = textAt(event, 'item', 'id')
        if (textAt(event, 'type') === 'item.started') running.add(id)
        if (textAt(event, 'type') === 'item.completed') running.delete(id)
        if (textAt(event, 'type') !== 'turn.completed' || running.size === 0) return facts
        // A command that takes long goes on after the turn; Codex ends it when it leaves.
        return [
          {
            type: 'warning',
            message: `Codex ended its turn while ${running.size} of its commands still ran; they were ended.`,
          },
          ...facts,
        ]
      },
    }
  },
  diagnose: (exitCode, stderr) => {
    const ending = exitCode === 0 ? 'crash' : endingOfError(stderr)
    return ending === 'crash' ? undefined : ending
  },
}

function hasOwnRules(passThrough: readonly string[]): boolean {
  return passThrough.some((arg) =>
    /^(?:--sandbox|-s|--full-auto|--ask-for-approval|-a|--dangerously-bypass.*|--yolo)\b/.test(arg),
  )
}

/** Values are TOML; a string of JSON is one of TOML, too. It knows no file for this but the user's own. */
function serverSettings({ name, command, args, env }: ClaimClient): string[] {
  const pairs = Object.entries(env).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  const settings = {
    command: JSON.stringify(command),
    args: JSON.stringify(args),
    env: `{${pairs.join(',')}}`,
    // A call is silent while the gates run; it would be given up after a minute.
    tool_timeout_sec: '86400',
  }
  return Object.entries(settings).flatMap(([key, value]) => ['-c', `mcp_servers.${name}.${key}=${value}`])
}

function parseCodex(event: unknown): readonly AgentFact[] {
  switch (textAt(event, 'type')) {
    case 'thread.started':
      return [{ type: 'session', id: textAt(event, 'thread_id') }]
    case 'item.started':
      return toolOf(at(event, 'item'))
    case 'item.completed':
      return completed(at(event, 'item'))
    case 'error': {
      // Not the end: it connects again by itself. Without a login it never will.
      const message = textAt(event, 'message')
      const ending = endingOfError(message)
      if (ending === 'auth') return [{ type: 'failed', ending, message, isHopeless: true }]
      return ending === 'crash' ? [] : [{ type: 'retry', ending }]
    }
    case 'turn.failed': {
      const message = textAt(event, 'error', 'message')
      return [{ type: 'failed', ending: endingOfError(message), message }]
    }
    case 'turn.completed': {
      const cached = countAt(event, 'usage', 'cached_input_tokens')
      const figures = {
        // Its input counts what was cached; ours does not.
        input_tokens: Math.max(0, countAt(event, 'usage', 'input_tokens') - cached),
        output_tokens: countAt(event, 'usage', 'output_tokens'),
        cache_read_tokens: cached,
        cache_creation_tokens: 0,
      }
      return [{ type: 'usage', figures }, { type: 'turn_over' }]
    }
    default:
      return []
  }
}

function completed(item: unknown): readonly AgentFact[] {
  const type = textAt(item, 'type')
  if (type === 'agent_message') return [{ type: 'text', text: textAt(item, 'text') }]
  if (type === 'file_change') {
    const paths = listAt(item, 'changes').map((change) => textAt(change, 'path'))
    return [{ type: 'tool', name: 'file_change', input: shortInput(paths.join(' ')) }]
  }
  return []
}

function toolOf(item: unknown): readonly AgentFact[] {
  const type = textAt(item, 'type')
  if (type === 'command_execution')
    return [{ type: 'tool', name: 'shell', input: shortInput(unwrapped(textAt(item, 'command'))) }]
  if (type === 'mcp_tool_call')
    return [{ type: 'tool', name: textAt(item, 'tool'), input: shortInput(at(item, 'arguments')) }]
  return type === 'web_search' ? [{ type: 'tool', name: type, input: shortInput(item) }] : []
}

/** It runs each command by `/bin/bash -lc '…'`: nobody wants to read that forty times. */
function unwrapped(command: string): string {
  const [, quote = '', inner = command] = /^\S*sh -l?c (['"]?)(.*)\1$/s.exec(command) ?? []
  return quote !== '' && inner.includes(quote) ? command : inner
}

/** A command's output comes whole in its `item.completed`, which says nothing else that matters; in any other order of its fields it is read. */
function endedCommand(line: Buffer): string | undefined {
  return commandEnd.exec(line.toString('latin1', 0, 200))?.[1]
}
const commandEnd =
  /^\{"type":"item\.completed","item":\{"id":"([^"\\]*)","type":"(?:command_execution|mcp_tool_call)"/
