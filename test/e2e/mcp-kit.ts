// A client of `ralph mcp` that says exactly what a test wants it to say, and the official inspector beside it.
import { execFile, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { program } from './harness.ts'
import type { Scratch } from './harness.ts'

const root = resolve(import.meta.dirname, '../..')

export interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: number; readonly message: string }
}

interface ToolAnswer {
  readonly text: string
  readonly isError: boolean
  readonly data: Record<string, unknown>
}

export interface McpClient {
  readonly child: ReturnType<typeof spawn>
  /** Everything that came, in order. */
  readonly heard: readonly Message[]
  /** Bytes as they are, for nonsense. */
  raw(text: string): boolean
  ask(method: string, params?: object): Promise<Message>
  call(name: string, args?: object): Promise<ToolAnswer>
  read(uri: string): Promise<unknown>
  /** Resolves when such a message has come, or is there. */
  hears(is: (message: Message) => boolean): Promise<Message>
  /** Closes its end of the pipe. */
  close(): Promise<{ readonly code: number | null; readonly stderr: string; readonly stdout: string }>
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string; readonly stdout: string }>
}

/** `era`: the handshake of 2025, or the one without of 2026. */
export async function connect(
  at: Scratch,
  args: readonly string[] = [],
  { era = '2025', cwd = at.repo }: { readonly era?: '2025' | '2026' | 'none'; readonly cwd?: string } = {},
): Promise<McpClient> {
  const child = spawn(process.execPath, [program, 'mcp', ...args], { cwd, env: at.env, stdio: 'pipe' })
  onTestFinished(() => {
    if (child.exitCode === null) child.kill('SIGKILL')
  })
  // One that is ended while the test still writes is what some tests are about.
  child.stdin.on('error', () => undefined)
  const heard: Message[] = []
  const watchers = new Set<() => void>()
  let [stdout, stderr, rest] = ['', '', '']
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')))
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString('utf8')
    rest += chunk.toString('utf8')
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    // Protocol and nothing else: anything else throws here.
    for (const line of lines) heard.push(JSON.parse(line) as Message)
    for (const look of watchers) look()
  })
  const ended = new Promise<Awaited<McpClient['ended']>>((done) =>
    child.on('close', (code) => {
      for (const look of watchers) look()
      done({ code, stderr, stdout })
    }),
  )
  const hears: McpClient['hears'] = (is) =>
    new Promise((done, fail) => {
      const look = (): void => {
        const found = heard.find(is)
        if (found === undefined && child.exitCode === null) return
        watchers.delete(look)
        if (found === undefined) fail(new Error(`the server ended before\n${stderr}`))
        else done(found)
      }
      watchers.add(look)
      look()
    })
  const raw = (text: string): boolean => child.stdin.write(text)
  let last = 0
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const ask: McpClient['ask'] = (method, params = {}) => {
    last += 1
    const id = last
    const whole = era === '2026' ? { ...params, _meta: meta } : params
    raw(`${JSON.stringify({ jsonrpc: '2.0', id, method, params: whole })}\n`)
    return hears((message) => message.id === id && message.method === undefined)
  }
  const client: McpClient = {
    child,
    heard,
    raw,
    ask,
    hears,
    ended,
    async call(name, args = {}) {
      const { result, error } = await ask('tools/call', { name, arguments: args })
      if (result === undefined) throw new Error(error?.message ?? 'no answer')
      const [content] = result['content'] as { text: string }[]
      const data = (result['structuredContent'] ?? {}) as Record<string, unknown>
      return { text: content?.text ?? '', isError: result['isError'] === true, data }
    },
    async read(uri) {
      const { result, error } = await ask('resources/read', { uri })
      if (result === undefined) throw new Error(error?.message ?? 'no answer')
      const [content] = result['contents'] as { text: string }[]
      return JSON.parse(content?.text ?? '') as unknown
    },
    close() {
      child.stdin.end()
      return ended
    },
  }
  if (era === '2025') {
    const clientInfo = { name: 'test', version: '1' }
    await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
    raw(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`)
  }
  return client
}

const inspectorClient = join(
  root,
  '.cache/agents/inspector-2.12.0/node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js',
)

/** As `npm test` does before the tests; for who runs one file alone. */
export function installInspector(): void {
  if (existsSync(inspectorClient)) return
  const certificates = process.env['RALPH_TEST_CA_CERTS']
  const env = { ...process.env, ...(certificates && { NODE_EXTRA_CA_CERTS: certificates }) }
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(root, 'scripts/install-agents.mjs'), 'inspector'],
    {
      env,
      encoding: 'utf8',
    },
  )
  if (status !== 0) throw new Error(`the inspector of MCP cannot be installed: ${stderr}`)
}

/** What the inspector prints, whatever was asked. */
interface Inspected {
  readonly tools?: readonly {
    readonly name: string
    readonly outputSchema?: object
    readonly annotations?: { readonly readOnlyHint: boolean }
  }[]
  readonly isError?: boolean
  readonly content?: readonly { readonly text: string }[]
  readonly structuredContent?: Readonly<Record<string, unknown>>
  readonly resources?: readonly { readonly uri: string }[]
  readonly resourceTemplates?: readonly object[]
  readonly contents?: readonly { readonly text: string }[]
}

/**
 * Questions by the official client, one after the other, each to a server of its own; it fails where the server or its schemas are at fault.
 * In one process: to load the client takes three times as long as an answer.
 */
export async function inspect<const Questions extends readonly (readonly string[])[]>(
  at: Scratch,
  server: readonly string[],
  questions: Questions,
): Promise<{ readonly [Question in keyof Questions]: Inspected }> {
  const words = questions.map((asked) => [process.execPath, program, 'mcp', ...server, ...asked])
  const script = `
    const { runCli } = await import(process.argv[2])
    const print = process.stdout.write.bind(process.stdout)
    const answers = []
    for (const words of JSON.parse(process.argv[1])) {
      let answer = ''
      process.stdout.write = (text, done) => {
        answer += text
        done?.()
        return true
      }
      await runCli(['node', 'inspector', ...words])
      answers.push(JSON.parse(answer))
    }
    print(JSON.stringify(answers), () => process.exit())`
  // The client last: as the first word it would take itself for the program.
  const args = ['--input-type=module', '-e', script, JSON.stringify(words), inspectorClient]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: at.repo,
    env: at.env,
    maxBuffer: 64 * 1024 * 1024,
  })
  return JSON.parse(stdout) as { readonly [Question in keyof Questions]: Inspected }
}

/** Every byte below a folder, and when each file was written last; folders and links too. */
export function pictureOf(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((name) => {
      const path = join(folder, name)
      const stats = lstatSync(path, { bigint: true })
      const what = stats.isSymbolicLink()
        ? readlinkSync(path)
        : stats.isFile()
          ? createHash('sha256').update(readFileSync(path)).digest('hex')
          : ''
      return `${name} ${stats.mode} ${stats.ino} ${stats.mtimeNs} ${what}`
    })
    .join('\n')
}
