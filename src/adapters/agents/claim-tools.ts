// The few messages of the Model Context Protocol that a server with four tools needs: JSON-RPC, a message a line.
import type { ClaimsOf } from './claim-server.ts'
import { at, parseJson, textAt } from './json.ts'

export interface ToolSession {
  hear(line: Buffer): void
  /** The client is gone: what it waited for ends. */
  end(): void
}

/** `working` holds what is under way. */
export function claimTools(
  of: ClaimsOf,
  write: (text: string) => void,
  working: Set<Promise<unknown>>,
): ToolSession {
  const running = new Map<unknown, AbortController>()
  const send = (message: object): void => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

  const complete = async (id: unknown, summary: string, token: unknown): Promise<Said> => {
    const gone = new AbortController()
    running.set(id, gone)
    let progress = 0
    // Clients give up on a call that is silent for a minute; gates may take longer.
    const pulse = setInterval(() => {
      progress += 1
      if (token !== undefined)
        send({ method: 'notifications/progress', params: { progressToken: token, progress } })
    }, pulseMs)
    try {
      const { isAccepted, claim, text } = await of.desk.complete(summary, gone.signal)
      if (isAccepted) of.promised({ kind: 'complete', claim })
      // An answer, not an error of the tool's.
      return right(text)
    } finally {
      clearInterval(pulse)
      running.delete(id)
    }
  }

  const call = async (id: unknown, params: unknown): Promise<Said> => {
    const tool = tools.find(({ name }) => name === textAt(params, 'name'))
    if (tool === undefined) return wrong(`There is no tool ${textAt(params, 'name')}.`)
    const given = at(params, 'arguments')
    const names = typeof given === 'object' && given !== null ? Object.keys(given) : []
    const text = textAt(given, tool.takes)
    // Of another story, say: it would be judged as one of this attempt's.
    if (names.some((name) => name !== tool.takes) || text.trim() === '')
      return wrong(
        `${tool.name} takes ${tool.takes}, some text, and nothing else: it is about your own story.`,
      )
    switch (tool.name) {
      case 'story_complete': {
        const judged = complete(id, text, at(params, '_meta', 'progressToken'))
        of.wait(judged)
        return judged
      }
      case 'story_failed':
        of.desk.failed(text)
        of.promised({ kind: 'failed', reason: text.trim().slice(0, 4000) })
        return right('Noted: this attempt counts as failed, unless a later claim is accepted. End your turn.')
      case 'report_progress':
        of.desk.progress(text)
        return right('Noted.')
      case 'record_learning':
        return (await of.desk.learned(text)) ? right('Noted.') : wrong('It could not be kept.')
    }
  }

  const answer = async (id: unknown, method: string, params: unknown): Promise<void> => {
    switch (method) {
      case 'initialize':
        return send({
          id,
          result: {
            protocolVersion: textAt(params, 'protocolVersion') || '2025-06-18',
            capabilities: { tools: {} },
            serverInfo: { name: 'ralph', version: '1' },
          },
        })
      case 'ping':
        return send({ id, result: {} })
      case 'tools/list':
        return send({ id, result: { tools: tools.map(described) } })
      case 'tools/call': {
        const { text, isError } = await call(id, params)
        return send({ id, result: { content: [{ type: 'text', text }], isError } })
      }
      default:
        return send({ id, error: { code: -32_601, message: `no such method: ${method}` } })
    }
  }

  return {
    hear(line) {
      const message = parseJson(line)
      const [id, method] = [at(message, 'id'), textAt(message, 'method')]
      const params = at(message, 'params')
      if (method === 'notifications/cancelled') running.get(at(params, 'requestId'))?.abort()
      if (method === '' || (typeof id !== 'string' && typeof id !== 'number')) return
      if (working.size >= mostCalls) {
        send({ id, error: { code: -32_000, message: 'too many calls at once' } })
        return
      }
      const answered = answer(id, method, params).finally(() => working.delete(answered))
      working.add(answered)
    },
    end() {
      for (const gone of running.values()) gone.abort()
    },
  }
}

interface Said {
  readonly text: string
  readonly isError: boolean
}

function right(text: string): Said {
  return { text, isError: false }
}

function wrong(text: string): Said {
  return { text, isError: true }
}

const pulseMs = 10_000
const mostCalls = 16

const tools = [
  {
    name: 'story_complete',
    takes: 'summary',
    says: 'Claims that your story is complete. The boxes are checked and the gates of the project run at once; the answer says what failed, so that you can fix it and claim again.',
  },
  {
    name: 'story_failed',
    takes: 'reason',
    says: 'Reports that your story cannot be done, and why. Your changes are undone, and the next attempt is told the reason.',
  },
  {
    name: 'report_progress',
    takes: 'task',
    says: 'Tells the person who watches, in a few words, what you are working on now.',
  },
  {
    name: 'record_learning',
    takes: 'text',
    says: 'Keeps a note about this project for those who work on it after you, also when your changes are undone.',
  },
] as const

interface Called {
  readonly name: string
  readonly input: string
}

export function isStoryClaim(called: Called): boolean {
  return /(?:^|_)story_complete\b/.test(nameOf(called))
}

/** Of those whose effect is told in another way. */
export function isClaimTool(called: Called): boolean {
  return /(?:^|_)(?:story_complete|story_failed|report_progress)\b/.test(nameOf(called))
}

/** Claude Code puts the server's before it (mcp__ralph_story__…); by ACP Gemini says "other", and puts it where the input should be. */
function nameOf({ name, input }: Called): string {
  return name === 'other' ? input : name
}

function described({ name, takes, says }: (typeof tools)[number]): object {
  return {
    name,
    description: says,
    inputSchema: {
      type: 'object',
      properties: { [takes]: { type: 'string' } },
      required: [takes],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  }
}
