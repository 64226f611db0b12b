// The one way out of a strict cage: a proxy of ralph's own behind a Unix socket, and what connects to it from inside.
import { lookup } from 'node:dns'
import { createServer, request, type ClientRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { isLoopbackName, listedPorts, mayReach, targetOf, type Host } from '../../core/cage-hosts.ts'

export interface Outlet {
  /** What stands before the command, inside. */
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string>>
  close(): void
}

/** It listens at once: a path that cannot be listened at is told by the first that calls. */
export function openOutlet(at: string, hosts: readonly Host[]): Outlet {
  const open = new Set<Duplex>()
  const keep = <T extends Duplex>(socket: T): T => {
    open.add(socket)
    socket.once('close', () => open.delete(socket)).on('error', () => socket.destroy())
    return socket
  }
  const server = createServer((asked, answer) => {
    const target = targetOf(asked.url ?? '')
    if (target === undefined || !mayReach(hosts, target.name, target.port)) {
      answer.writeHead(403, { connection: 'close' }).end(refusal(asked.url ?? ''))
      return
    }
    const passed = passOn(asked, target)
    if (passed === undefined) {
      answer.writeHead(400, { connection: 'close' }).end()
      return
    }
    passed.once('response', (got) => {
      got.on('error', () => answer.destroy())
      try {
        answer.writeHead(got.statusCode ?? 502, got.headers)
        got.pipe(answer)
      } catch {
        // Headers that Node reads and does not write.
        answer.destroy()
      }
    })
    asked.on('error', () => passed.destroy())
    passed.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end()))
    asked.pipe(passed)
  })
  server.on('connection', (socket: Socket) => void keep(socket))
  server.on('connect', (asked: IncomingMessage, socket: Duplex, head: Buffer) => {
    const target = targetOf(asked.url ?? '')
    if (target === undefined || !mayReach(hosts, target.name, target.port)) {
      socket.end(`HTTP/1.1 403 Forbidden\r\n\r\n${refusal(asked.url ?? '')}`)
      return
    }
    const far = keep(connect({ host: bare(target.name), port: target.port, lookup: lookupOf(target.name) }))
    far.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      far.write(head)
      far.pipe(socket).pipe(far)
    })
    far.once('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
    socket.once('close', () => far.destroy())
  })
  server.on('error', () => undefined)
  server.on('clientError', (_, socket: Duplex) => void socket.destroy())
  server.listen(at)
  server.unref()
  const proxy = `http://127.0.0.1:${proxyPort}`
  return {
    words: [process.execPath, '-e', bridge, at, listedPorts(hosts).join(',')],
    env: {
      ...Object.fromEntries(
        ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map((name) => [name, proxy]),
      ),
      ...Object.fromEntries(['NO_PROXY', 'no_proxy'].map((name) => [name, 'localhost,127.0.0.1,::1'])),
      // Node's own fetch asks for it from version 24 on.
      NODE_USE_ENV_PROXY: '1',
    },
    close() {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}

/** Undefined where it is no request that could be made: whoever sends it must not end ralph by that. */
function passOn(
  asked: IncomingMessage,
  { name, port }: { readonly name: string; readonly port: number },
): ClientRequest | undefined {
  try {
    const { pathname, search } = new URL(asked.url ?? '')
    const own = /^(?:proxy-.*|connection|keep-alive)$/
    return request({
      host: bare(name),
      port,
      method: asked.method,
      path: `${pathname}${search}`,
      headers: {
        ...Object.fromEntries(Object.entries(asked.headers).filter(([header]) => !own.test(header))),
        connection: 'close',
      },
      lookup: lookupOf(name),
    })
  } catch {
    return undefined
  }
}

/** In the cage's own network nobody else has it. */
const proxyPort = 3128

function refusal(what: string): string {
  return `ralph: ${what} is not listed in sandbox_hosts\n`
}

function bare(name: string): string {
  return name.replaceAll(/[[\]]/g, '')
}

/** A listed name must not lead to the machine's own loopback, whatever its DNS says. */
function lookupOf(name: string): typeof lookup {
  const checked = (host: string, options: object, done: (...args: unknown[]) => void): void => {
    lookup(host, options, (error: Error | null, address: unknown, family: unknown) => {
      const addresses = Array.isArray(address)
        ? address.map((each: { address: string }) => each.address)
        : [String(address)]
      const isOwn = addresses.some((each) =>
        /^(?:127\.|0\.|::1$|::$|::ffff:127\.|169\.254\.|fe80:)/i.test(each),
      )
      if (error === null && isOwn && !isLoopbackName(name)) done(new Error(`${host} is this machine`))
      else done(error, address, family)
    })
  }
  return checked as unknown as typeof lookup
}

/**
 * Runs inside, before the command and until its end: the proxy's port and the listed ones of the machine's loopback lead to the socket
 * outside. Signals are for the command, which has them from ralph.
 */
const bridge = `const{createServer,connect}=require('node:net'),{spawn}=require('node:child_process'),{constants}=require('node:os')
const own=process,[at,ports,file,...args]=own.argv.slice(1),quiet=()=>{}
for(const s of['SIGINT','SIGTERM','SIGHUP'])own.on(s,quiet)
const serve=(port,take)=>new Promise(done=>createServer(take).on('error',done).listen(port,'127.0.0.1',done))
const plain=c=>{const u=connect(at);c.on('error',quiet);u.on('error',()=>c.destroy());c.pipe(u).pipe(c);c.on('close',()=>u.destroy())}
const tunnel=port=>c=>{const u=connect(at);c.on('error',quiet).pause();u.on('error',()=>c.destroy());c.on('close',()=>u.destroy())
u.write('CONNECT 127.0.0.1:'+port+' HTTP/1.1\\r\\n\\r\\n');let head=Buffer.alloc(0)
u.on('data',function first(d){head=Buffer.concat([head,d]);const end=head.indexOf('\\r\\n\\r\\n');if(end<0)return;u.off('data',first)
if(!head.toString('latin1').startsWith('HTTP/1.1 200'))return c.destroy()
c.write(head.subarray(end+4));u.pipe(c).pipe(u);c.resume()})}
Promise.all([serve(${proxyPort},plain),...ports.split(',').filter(Boolean).map(p=>serve(+p,tunnel(p)))]).then(()=>{
const child=spawn(file,args,{stdio:'inherit'})
child.on('error',e=>{console.error('sh: '+file+': not found: '+e.message);own.exit(127)})
child.on('exit',(code,signal)=>own.exit(code??128+constants.signals[signal]))})`
