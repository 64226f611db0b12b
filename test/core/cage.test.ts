// The cage as text: the words for bubblewrap, the profile for macOS, and the lists behind them.
import { describe, expect, test } from 'vitest'
import { hostOf, listedPorts, mayReach, targetOf } from '../../src/core/cage-hosts.ts'
import { isOthersVariable, withoutLogins } from '../../src/core/cage-homes.ts'
import { bwrapWords, seatbeltProfile, type CagePlaces } from '../../src/core/cage.ts'
import { bytesOf, limitsOf, sized } from '../../src/core/resource-limits.ts'

const places: CagePlaces = {
  hiddenFolders: ['/run', '/home/me/.ssh', '/home/me/shared/.aws'],
  hiddenFiles: ['/home/me/.netrc'],
  shown: ['/run/resolvconf'],
  links: [],
  writable: ['/home/me/work', '/home/me/work/.git', '/home/me/shared', '/home/me/work/.git/ralph/ledger'],
  readOnly: ['/home/me/work/.git/config', '/home/me/work/.git/ralph'],
  instead: [{ at: '/home/me/.npmrc', from: '/tmp/own/npmrc', isWritable: false }],
  temp: '/tmp/own/tmp',
  nothing: '/tmp/own/nothing',
  commonTemps: ['/tmp'],
}

/** What comes of a path: the last mount that holds it. */
function becomes(path: string, mode: 'workspace' | 'strict' = 'workspace'): string {
  const words = bwrapWords(mode, places, '/home/me/work')
  let what = ''
  for (let at = 0; at < words.length; at += 1) {
    const [how = '', from = '', to = ''] = words.slice(at, at + 3)
    const target = how === '--tmpfs' ? from : to
    if (!['--tmpfs', '--bind', '--ro-bind', '--ro-bind-try'].includes(how)) continue
    if (path === target || path.startsWith(target === '/' ? '/' : `${target}/`)) what = `${how} ${from}`
  }
  return what
}

describe('the words for bubblewrap', () => {
  test.each([
    ['/etc/passwd', '--ro-bind /'],
    ['/home/me/.bashrc', '--ro-bind /'],
    ['/home/me/.ssh/id', '--tmpfs /home/me/.ssh'],
    ['/home/me/.netrc', '--ro-bind /tmp/own/nothing'],
    ['/home/me/.npmrc', '--ro-bind /tmp/own/npmrc'],
    ['/home/me/work/src/a.ts', '--bind /home/me/work'],
    ['/home/me/work/.git/index', '--bind /home/me/work/.git'],
    ['/home/me/work/.git/config', '--ro-bind /home/me/work/.git/config'],
    ['/home/me/work/.git/ralph/journal', '--ro-bind /home/me/work/.git/ralph'],
    ['/home/me/work/.git/ralph/ledger', '--bind /home/me/work/.git/ralph/ledger'],
    ['/home/me/shared/x', '--bind /home/me/shared'],
    ['/home/me/shared/.aws/credentials', '--tmpfs /home/me/shared/.aws'],
    ['/run/docker.sock', '--tmpfs /run'],
    ['/run/resolvconf/x', '--ro-bind-try /run/resolvconf'],
    ['/tmp/ssh-x/agent', '--bind /tmp/own/tmp'],
  ])('a deeper place wins: %s', (path, what) => expect(becomes(path)).toBe(what))

  test('few mounts, since each bind reads the list of all: nothing is hidden in what is hidden or shown in what is shown, and hidden folders that hold nothing come last', () => {
    const shut = {
      ...places,
      hiddenFolders: ['/home/me', '/home/me/.ssh', '/home/me.old/.ssh', '/home/me/src/.aws', '/srv'],
      hiddenFiles: ['/home/me/.netrc', '/home/me/src/.netrc'],
      shown: ['/home/me/src', '/home/me/src/bin/agent', '/home/me/.bashrc'],
      links: [{ at: '/home/me/.zshrc', to: 'src/zshrc' }],
    }
    const words = bwrapWords('workspace', shut, '/home/me/work')
    const at = (word: string): number => words.indexOf(word)
    for (const gone of ['/home/me/.ssh', '/home/me/.netrc', '/home/me/src/bin/agent'])
      expect(words).not.toContain(gone)
    for (const [before, after] of [
      ['/home/me', '/home/me/src'],
      ['/home/me/src', '/home/me/src/.netrc'],
      ['/home/me/src/.netrc', '/home/me/src/.aws'],
      ['/home/me/work/.git/ralph/ledger', '/srv'],
      ['/home/me/work', '/home/me.old/.ssh'],
    ] as const)
      expect([before, at(before) < at(after)]).toEqual([before, true])
    expect(words.join(' ')).toContain('--symlink src/zshrc /home/me/.zshrc')
  })

  test('hidden folders are sealed by their rights; processes and rights are its own; the network only where it is strict', () => {
    const words = bwrapWords('workspace', places, '/home/me/work').join(' ')
    for (const folder of ['/home/me/.ssh', '/home/me/shared/.aws', '/run'])
      expect(words).toContain(`--perms 0555 --tmpfs ${folder} `)
    expect(words).toMatch(/ --chdir \/home\/me\/work --$/)
    expect(words).toContain('--unshare-pid --unshare-ipc --die-with-parent --cap-drop ALL')
    expect(words).not.toContain('--unshare-net')
    expect(bwrapWords('strict', places, '/home/me/work')).toContain('--unshare-net')
  })
})

describe('the profile for macOS', () => {
  test('has the same meaning: reading but for secrets, writing only where it may, a deeper rule later', () => {
    const profile = seatbeltProfile('workspace', places)
    const lines = profile.split('\n')
    const at = (line: string): number => lines.indexOf(line)
    expect(lines.slice(0, 3)).toEqual(['(version 1)', '(allow default)', '(deny file-write*)'])
    expect(at('(deny file-read* file-write* (subpath "/home/me/.ssh"))')).toBeGreaterThan(2)
    expect(at('(allow file-read* file-write* (subpath "/home/me/work"))')).toBeLessThan(
      at('(deny file-write* (subpath "/home/me/work/.git/config"))'),
    )
    expect(at('(deny file-write* (subpath "/home/me/work/.git/ralph"))')).toBeLessThan(
      at('(allow file-read* file-write* (subpath "/home/me/work/.git/ralph/ledger"))'),
    )
    expect(at('(allow file-read* file-write* (subpath "/home/me/shared"))')).toBeLessThan(
      at('(deny file-read* file-write* (subpath "/home/me/shared/.aws"))'),
    )
    expect(profile).toContain('(allow signal (target same-sandbox))')
    expect(profile).not.toContain('network')
  })

  test('names are quoted, and strict leaves only the proxy', () => {
    const odd = { ...places, writable: ['/a "b" \\c'] }
    expect(seatbeltProfile('workspace', odd)).toContain(String.raw`(subpath "/a \"b\" \\c")`)
    const strict = seatbeltProfile('strict', places, 3128)
    expect(strict).toContain('(deny network*)')
    expect(strict).toContain('(allow network-outbound (remote ip "localhost:3128"))')
  })
})

describe('the hosts of a strict one', () => {
  const hosts = ['example.org', '*.example.net', 'api.example.com:8443', 'localhost:8080'].flatMap(
    (text) => hostOf(text) ?? [],
  )
  test.each([
    ['example.org', 443, true],
    ['EXAMPLE.org.', 80, true],
    ['example.org', 22, false],
    ['evil-example.org', 443, false],
    ['example.org.evil.com', 443, false],
    ['a.example.net', 443, true],
    ['example.net', 443, false],
    ['api.example.com', 8443, true],
    ['api.example.com', 443, false],
    ['127.0.0.1', 8080, true],
    ['localhost', 8081, false],
    ['127.0.0.1', 443, false],
  ])('%s:%i %s', (name, port, may) => expect(mayReach(hosts, name, port)).toBe(may))

  test('are read from what is written, and refused where they are none', () => {
    expect(listedPorts(hosts)).toEqual([8080])
    for (const text of ['', 'http://a.org', 'a.org:99999', 'a b', '*', 'a.org/x', '*.*.org'])
      expect(hostOf(text)).toBeUndefined()
    expect(targetOf('a.org:443')).toEqual({ name: 'a.org', port: 443 })
    expect(targetOf('http://a.org/x')).toEqual({ name: 'a.org', port: 80 })
    expect(targetOf('http://me@a.org/')).toBeUndefined()
    expect(targetOf('/x')).toBeUndefined()
  })
})

test('registry settings keep where packages come from, and lose who one is', () => {
  const text = 'registry=https://r.invalid/\n//r.invalid/:_authToken=abc\n_auth=abc\nemail=me@x\ncafile=/x\n'
  expect(withoutLogins(text)).toBe('registry=https://r.invalid/\ncafile=/x\n')
})

test.each([
  ['SSH_AUTH_SOCK', undefined, {}, true],
  ['GITHUB_TOKEN', 'claude', {}, true],
  ['ANTHROPIC_API_KEY', 'claude', {}, false],
  ['OPENAI_API_KEY', undefined, {}, false],
  ['PATH', undefined, {}, false],
  ['AWS_SECRET_ACCESS_KEY', 'claude', {}, true],
  ['AWS_SECRET_ACCESS_KEY', 'claude', { CLAUDE_CODE_USE_BEDROCK: '1' }, false],
  ['AWS_SECRET_ACCESS_KEY', 'codex', { CLAUDE_CODE_USE_BEDROCK: '1' }, true],
])('the variable %s of %s is somebody else’s: %o %s', (name, agent, env, isOthers) =>
  expect(isOthersVariable(name, agent, env)).toBe(isOthers),
)

test('sizes are as people write them', () => {
  expect([bytesOf('4G'), bytesOf('1.5M'), bytesOf('10K')]).toEqual([4 * 1024 ** 3, 1.5 * 1024 ** 2, 10_240])
  expect([sized(4 * 1024 ** 3), sized(1.5 * 1024 ** 2), sized(12)]).toEqual(['4G', '1.5M', '12'])
  expect(limitsOf({})).toBeUndefined()
  expect(limitsOf({ max_memory: '1K', max_processes: 3 })).toEqual({ memoryBytes: 1024, processes: 3 })
})
