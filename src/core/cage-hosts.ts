// Which hosts a strict cage may reach: what the user lists, and what its agent's own service needs.

export interface Host {
  /** Lower case; `*.example.org` for all below it, not for itself. */
  readonly name: string
  /** Absent: those of the web. */
  readonly port?: number
}

/** Undefined where it is none. */
export function hostOf(text: string): Host | undefined {
  const found = /^((?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:]+\])(?::(\d{1,5}))?$/i.exec(text.trim())
  const [, name, port] = found ?? []
  if (name === undefined || Number(port ?? 1) > 65_535) return undefined
  return { name: name.toLowerCase(), ...(port !== undefined && { port: Number(port) }) }
}

export function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || /^127(?:\.\d+){3}$/.test(name)
}

/** Ports of the machine's own loopback: inside they are the same ports, and need no proxy. */
export function listedPorts(hosts: readonly Host[]): readonly number[] {
  const ports = hosts.flatMap(({ name, port }) => (isLoopbackName(name) && port !== undefined ? [port] : []))
  return [...new Set(ports)]
}

export function mayReach(hosts: readonly Host[], name: string, port: number): boolean {
  const asked = name.toLowerCase().replace(/\.$/, '')
  return hosts.some((host) => {
    if (host.port === undefined ? port !== 443 && port !== 80 : host.port !== port) return false
    if (isLoopbackName(host.name)) return isLoopbackName(asked)
    return host.name.startsWith('*.') ? asked.endsWith(host.name.slice(1)) : asked === host.name
  })
}

const webPort = { http: 80, https: 443 } as const

/** Of `example.org:443` or `http://example.org/x`; undefined where it is neither. */
export function targetOf(text: string): { readonly name: string; readonly port: number } | undefined {
  const url = /^(https?):\/\/(\[[0-9a-f:]+\]|[^/:@]+)(?::(\d+))?(?:\/|$)/i.exec(text)
  if (url !== null) {
    const scheme = url[1]?.toLowerCase() === 'https' ? 'https' : 'http'
    return { name: url[2] ?? '', port: Number(url[3] ?? webPort[scheme]) }
  }
  const pair = /^(\[[0-9a-f:]+\]|[^/:@]+):(\d+)$/i.exec(text)
  return pair === null ? undefined : { name: pair[1] ?? '', port: Number(pair[2]) }
}
