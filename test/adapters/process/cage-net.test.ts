// The way out of a strict cage, as its bridge uses it: what is listed is reached, and nothing else.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openOutlet } from '../../../src/adapters/process/cage-net.ts'
import { hostOf } from '../../../src/core/cage-hosts.ts'

test('a listed host is reached by CONNECT and by its address; another, another port, and a name that leads to this machine are refused', async () => {
  const server = createServer((asked, answer) => answer.end(`${asked.method} ${asked.url}`))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const folder = mkdtempSync(join(tmpdir(), 'ralph-net-'))
  const at = join(folder, 'out')
  const hosts = [`127.0.0.1:${port}`, `ip6-localhost:${port}`].flatMap((text) => hostOf(text) ?? [])
  const outlet = openOutlet(at, hosts)
  onTestFinished(() => {
    outlet.close()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const say = async (first: string, then = ''): Promise<string> => {
    const socket = connect(at)
    socket.on('error', () => undefined)
    let said = ''
    socket.on('data', (chunk: Buffer) => {
      if (said === '' && then !== '') socket.write(then)
      said += chunk.toString('latin1')
    })
    socket.write(first)
    await once(socket, 'close')
    return said
  }
  const get = 'GET /x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'
  expect(await say(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`, get)).toMatch(/^HTTP\/1.1 200 [^]*GET \/x/)
  expect(
    await say(`GET http://127.0.0.1:${port}/y?z HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`),
  ).toMatch(/^HTTP\/1.1 200 [^]*GET \/y\?z/)
  for (const target of ['example.org:443', `127.0.0.1:${port === 1 ? 2 : 1}`, 'nonsense'])
    expect(await say(`CONNECT ${target} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 403 /)
  expect(await say('GET http://example.org/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')).toContain(
    'http://example.org/ is not listed in sandbox_hosts',
  )
  // Nonsense ends nobody.
  expect(await say('nonsense\r\n\r\n')).toBe('')
  expect(
    await say(`GET http://127.0.0.1:${port}/\u00e4 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`),
  ).toMatch(/^(?:HTTP\/1.1 \d+ [^]*)?$/)
  expect(await say(`CONNECT ip6-localhost:${port} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 502 /)
})
