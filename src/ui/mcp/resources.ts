// The loops as resources: all of them, and each by its change; a client is told when one has changed.
import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceTemplate,
  type McpServer,
} from '@modelcontextprotocol/server'
import type { LoopSeen } from '../app.ts'
import { withoutIterations } from './looks.ts'
import { setTimeout as delay } from 'node:timers/promises'

const listUri = 'ralph://loops'

function loopUri(change: string): string {
  return `${listUri}/${encodeURIComponent(change)}`
}

const json = { mimeType: 'application/json' }

export interface Watched {
  /** From the first question about a resource on; whoever only calls tools costs no look. Resolves when what comes from now on is told. */
  readonly begin: () => Promise<void>
}

export function addResources(
  server: McpServer,
  {
    look,
    isModern,
    stop,
    onBug,
  }: {
    readonly look: () => Promise<readonly LoopSeen[]>
    /** Since 2026 who subscribes is known to the transport alone, which drops what nobody asked for. */
    readonly isModern: boolean
    readonly stop: AbortSignal
    readonly onBug: (error: unknown) => void
  },
): Watched {
  const wanted = new Set<string>()
  const tellOf = async (uri: string): Promise<void> => {
    if (isModern || wanted.has(uri)) await server.server.sendResourceUpdated({ uri })
  }
  let begun: Promise<void> | undefined
  const begin = (): Promise<void> =>
    (begun ??= new Promise<void>((resolve) => {
      watchLoops(
        () =>
          look().catch((error: unknown) => {
            onBug(error)
            return undefined
          }),
        async (changes, isOtherList) => {
          for (const change of changes) await tellOf(loopUri(change))
          await tellOf(listUri)
          if (isOtherList) await server.server.sendResourceListChanged()
        },
        { stop, onFirst: resolve },
      ).catch((error: unknown) => {
        // One that has gone is told nothing.
        if (!stop.aborted) onBug(error)
      })
    }))
  server.registerResource(
    'loops',
    listUri,
    { ...json, title: 'Ralph loops', description: 'Every loop of this repository, in all its work trees.' },
    async () => {
      void begin()
      const loops = await look()
      return contents(listUri, { loops: loops.map(withoutIterations) })
    },
  )
  server.registerResource(
    'loop',
    new ResourceTemplate(`${listUri}/{change_id}`, {
      list: async () => {
        void begin()
        const names = new Set((await look()).map((loop) => loop.change_id))
        return { resources: [...names].map((name) => ({ ...json, uri: loopUri(name), name })) }
      },
      complete: {
        change_id: async (typed) =>
          (await look()).map((loop) => loop.change_id).filter((name) => name.startsWith(typed)),
      },
    }),
    { ...json, title: 'One Ralph loop', description: 'The loop of one change.' },
    async (uri, { change_id: asked }) => {
      void begin()
      const name = decoded(String(asked))
      const loops = (await look()).filter((loop) => loop.change_id === name)
      if (loops.length === 0)
        throw new ProtocolError(ProtocolErrorCode.ResourceNotFound, `No Ralph loop found for: ${name}`, {
          uri: uri.href,
        })
      return contents(uri.href, loops.length === 1 ? loops[0] : { loops })
    },
  )
  server.server.registerCapabilities({ resources: { subscribe: true, listChanged: true } })
  if (!isModern) {
    server.server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => {
      // A client that asks for ever more of them gets no more.
      if (wanted.size >= mostSubscriptions)
        throw new ProtocolError(ProtocolErrorCode.InvalidRequest, 'Too many subscriptions')
      wanted.add(uri)
      await begin()
      return {}
    })
    server.server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) => {
      wanted.delete(uri)
      return {}
    })
  }
  return { begin }
}

const mostSubscriptions = 1000

function contents(
  uri: string,
  data: unknown,
): { contents: { uri: string; mimeType: string; text: string }[] } {
  return { contents: [{ uri, ...json, text: JSON.stringify(data, undefined, 2) }] }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Journals are read from where the last look ended: one that finds nothing new reads no byte. */
const lookMs = 500

/** `tell` is waited for: a client that does not read hears of many changes as one. A look that fails says nothing, and the next one may do. */
async function watchLoops(
  look: () => Promise<readonly LoopSeen[] | undefined>,
  tell: (changes: readonly string[], isOtherList: boolean) => Promise<void>,
  { stop, onFirst }: { readonly stop: AbortSignal; readonly onFirst: () => void },
): Promise<void> {
  let before: ReadonlyMap<string, string> | undefined
  while (!stop.aborted) {
    const seen = await look()
    const now = seen === undefined ? before : pictured(seen)
    if (before !== undefined && now !== undefined) {
      const names = new Set([...before.keys(), ...now.keys()])
      const changed = [...names].filter((name) => before?.get(name) !== now.get(name))
      const isOtherList = [...names].some((name) => before?.has(name) !== now.has(name))
      if (changed.length > 0) await tell(changed, isOtherList)
    }
    before = now
    onFirst()
    await delay(lookMs, undefined, { signal: stop }).catch(() => undefined)
  }
}

/** A file that is only written again has not changed. */
function pictured(loops: readonly LoopSeen[]): ReadonlyMap<string, string> {
  const pictures = new Map<string, string>()
  for (const { updated_at: _, ...loop } of loops)
    pictures.set(loop.change_id, `${pictures.get(loop.change_id) ?? ''}${JSON.stringify(loop)}`)
  return pictures
}
