// OpenCode: `opencode run --format json`. It has no event for the end of a turn: the step that stops is it.
import { endingOfError, endingOfStatus, isUnpaid } from './failure.ts'
import { at, countAt, parseJson, shortInput, textAt } from './json.ts'
import { providerKeys } from './keys.ts'
import type { AgentFact, AgentKind } from './kind.ts'

export const opencode: AgentKind = {
  program: 'opencode',
  speaks: 'lines',
  keys: providerKeys,
  launch: ({ prompt, model, passThrough }) => ({
    file: 'opencode',
    args: [
      'run',
      '--format',
      'json',
      '--auto',
      ...(model === undefined ? [] : ['-m', model]),
      ...passThrough,
    ],
    env: { OPENCODE_DISABLE_AUTOUPDATE: '1' },
    input: prompt,
  }),
  listen: () => {
    let session = ''
    return {
      hear: (line) => {
        if (!canMatter(line)) return []
        const event = parseJson(line)
        const id = textAt(event, 'sessionID')
        const facts = parseOpencode(event)
        if (id === '' || id === session) return facts
        session = id
        return [{ type: 'session', id }, ...facts]
      },
    }
  },
  diagnose: (exitCode, stderr) => {
    const ending = exitCode === 0 ? 'crash' : endingOfError(stderr)
    return ending === 'crash' ? undefined : ending
  },
}

function parseOpencode(event: unknown): readonly AgentFact[] {
  switch (textAt(event, 'type')) {
    case 'text':
      return [{ type: 'text', text: textAt(event, 'part', 'text') }]
    case 'tool_use': {
      const name = textAt(event, 'part', 'tool')
      const tool: AgentFact = { type: 'tool', name, input: shortInput(at(event, 'part', 'state', 'input')) }
      return name === 'question' ? [tool, { type: 'halted', ending: 'question' }] : [tool]
    }
    case 'step_finish': {
      const cost = at(event, 'part', 'cost')
      const figures = {
        input_tokens: countAt(event, 'part', 'tokens', 'input'),
        // Its output is without what was thought, which is paid for like it.
        output_tokens:
          countAt(event, 'part', 'tokens', 'output') + countAt(event, 'part', 'tokens', 'reasoning'),
        cache_read_tokens: countAt(event, 'part', 'tokens', 'cache', 'read'),
        cache_creation_tokens: countAt(event, 'part', 'tokens', 'cache', 'write'),
        ...(typeof cost === 'number' && cost >= 0 && { cost_usd: cost }),
      }
      const usage: AgentFact = { type: 'usage', figures, isStep: true }
      return textAt(event, 'part', 'reason') === 'stop'
        ? [usage, { type: 'turn_over', mayFail: true }]
        : [usage]
    }
    case 'error': {
      const message = textAt(event, 'error', 'data', 'message') || textAt(event, 'error', 'name')
      const status = countAt(event, 'error', 'data', 'statusCode')
      const words = `${textAt(event, 'error', 'name')} ${message}`
      // OpenAI calls an empty account a 429.
      const byStatus = status > 0 && !isUnpaid(words) ? endingOfStatus(status) : 'crash'
      const ending = byStatus === 'crash' ? endingOfError(words) : byStatus
      return [{ type: 'failed', ending, message }]
    }
    default:
      return []
  }
}

/** A tool's output is inside its event, whose head names it. */
function canMatter(line: Buffer): boolean {
  return line.length < 262_144 || !line.subarray(0, 64).includes('"tool_use"')
}
