// Settings, hooks and info/ of the git directory around an attempt: what git would obey later comes back, what the user did beside it stays.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { takeOver } from '../../../src/adapters/git/guard/refused-settings.ts'
import { blankMemory, remember } from '../../../src/core/git-memory.ts'
import type { LoopEvent } from '../../../src/core/event.ts'
import { checkpointFolder } from '../../../src/adapters/git/store.ts'
import { run } from '../../shell.ts'
import { makeWorld, type Strategy, type World } from './world.ts'

const worlds: World[] = []
function world(): World {
  const made = makeWorld()
  worlds.push(made)
  return made
}
afterEach(() => {
  for (const made of worlds.splice(0)) made.end()
})

const inGit = (w: World, name: string): string => join(w.dir, '.git', name)
const config = (w: World): string => readFileSync(inGit(w, 'config'), 'utf8')
const warnings = (w: World): string[] =>
  w.journal.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
const accept = (w: World): Promise<string[]> =>
  takeOver({ git: w.gitPort, change: 'demo', folder: checkpointFolder(w.gitPort.gitCommonDir, 'demo') })

/** Every bit of what git obeys. */
function obeyed(w: World): Record<string, string> {
  const found: Record<string, string> = {}
  const names = ['config', 'config.worktree', 'hooks', 'info', 'own-hooks']
  const listed = run('find', [...names, '!', '-type', 'd'], { cwd: inGit(w, ''), env: w.env })
  for (const path of listed.split('\n').filter((line) => line !== '')) {
    const stats = lstatSync(inGit(w, path))
    found[path] = stats.isSymbolicLink()
      ? `link ${readlinkSync(inGit(w, path))}`
      : `${(stats.mode & 0o7777).toString(8)} ${readFileSync(inGit(w, path), 'latin1')}`
  }
  return found
}

/** find fails where a name is not there; all of them are. */
function prepared(): World {
  const w = world()
  w.write('.git/hooks/pre-commit', '#!/bin/sh\nexit 0\n', 0o755)
  w.write('.git/own-hooks/post-merge', '#!/bin/sh\n', 0o755)
  w.write('.git/info/exclude', '*.swp\n')
  w.write('.git/config.worktree', '[core]\n\tx = 1\n')
  symlinkSync('../../run.sh', inGit(w, 'hooks/post-commit'))
  chmodSync(inGit(w, 'config'), 0o600)
  return w
}

const deeds: Record<string, (w: World) => void> = {
  'sets what git would run': (w) => {
    for (const key of ['core.fsmonitor', 'core.pager', 'core.sshCommand', 'alias.st', 'credential.helper'])
      w.git('config', key, `touch ${w.root}/ran`)
  },
  'points hooks elsewhere': (w) => w.git('config', 'core.hooksPath', '/nowhere'),
  'includes another file': (w) => w.git('config', 'include.path', '../evil'),
  'sets it for this work tree': (w) => w.write('.git/config.worktree', '[core]\n\tfsmonitor = x\n'),
  'breaks the settings': (w) => w.write('.git/config', 'garbage ]['),
  'removes the settings': (w) => rmSync(inGit(w, 'config')),
  'writes a hook': (w) => w.write('.git/hooks/post-checkout', '#!/bin/sh\ntouch ran\n', 0o755),
  'changes a hook': (w) => w.write('.git/hooks/pre-commit', '#!/bin/sh\ntouch ran\n'),
  'makes a hook useless': (w) => chmodSync(inGit(w, 'hooks/pre-commit'), 0o644),
  'removes hooks': (w) => rmSync(inGit(w, 'hooks'), { recursive: true }),
  'puts a link in the place of the hooks': (w) => {
    rmSync(inGit(w, 'hooks'), { recursive: true })
    mkdirSync(join(w.root, 'evil'))
    symlinkSync(join(w.root, 'evil'), inGit(w, 'hooks'))
  },
  'puts a folder in the place of a hook': (w) => {
    rmSync(inGit(w, 'hooks/pre-commit'))
    w.write('.git/hooks/pre-commit/x', 'x')
  },
  'puts a pipe in the place of a hook': (w) => {
    rmSync(inGit(w, 'hooks/pre-commit'))
    execFileSync('mkfifo', [inGit(w, 'hooks/pre-commit')])
  },
  'turns a link elsewhere': (w) => {
    rmSync(inGit(w, 'hooks/post-commit'))
    symlinkSync('/bin/true', inGit(w, 'hooks/post-commit'))
  },
  'writes attributes, grafts, ignore rules': (w) => {
    w.write('.git/info/attributes', '* filter=x\n')
    w.write('.git/info/grafts', 'x')
    w.write('.git/info/exclude', '*\n')
  },
  'opens a file with a secret': (w) => chmodSync(inGit(w, 'config'), 0o644),
}

describe.each<[Strategy, 'save' | 'restore']>([
  ['branch', 'save'],
  ['stash', 'restore'],
])('what git obeys is as before every attempt (%s, then %s)', (strategy, then) => {
  for (const [what, deed] of Object.entries(deeds)) {
    it(`O10, M3: an agent that ${what}`, async () => {
      const w = prepared()
      const checkpoints = w.checkpoints(strategy)
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      const before = obeyed(w)
      w.write('work.md', 'w')
      deed(w)
      await checkpoints.keep(1)
      expect(obeyed(w)).toEqual(before)
      if (then === 'save') await checkpoints.save('1', 'checkpoint: 1')
      else await checkpoints.restore()
      expect(obeyed(w)).toEqual(before)
      expect(existsSync(join(w.root, 'ran'))).toBe(false)
      if (what !== 'opens a file with a secret') expect(warnings(w)).toHaveLength(1)
      await checkpoints.ensure('2')
    })
  }

  it('O10, M3: a gate that installs a hook leaves it as little as the agent', async () => {
    const w = prepared()
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const before = obeyed(w)
    w.write('work.md', 'w')
    await checkpoints.keep(1)
    w.git('config', 'core.hooksPath', 'x')
    await checkpoints.save('1', 'checkpoint: 1')
    expect(obeyed(w)).toEqual(before)
    expect(warnings(w)).toEqual([expect.stringMatching(/^changed while #1 ran.*core\.hookspath = x/)])
  })

  it('O10, M3: hooks in a folder of the git directory that core.hooksPath names come back too', async () => {
    const w = prepared()
    w.git('config', 'core.hooksPath', inGit(w, 'own-hooks'))
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const before = obeyed(w)
    w.write('.git/own-hooks/pre-commit', 'x', 0o755)
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect(obeyed(w)).toEqual(before)
  })
})

describe.each<[Strategy, 'save' | 'restore']>([
  ['branch', 'save'],
  ['branch', 'restore'],
  ['stash', 'restore'],
])('history and objects of elsewhere (%s, then %s)', (strategy, then) => {
  const attempt = async (w: World, deed: () => void): Promise<readonly string[]> => {
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('work.md', 'w')
    deed()
    const { warnings: told } = await checkpoints.keep(1)
    if (then === 'save') await checkpoints.save('1', 'checkpoint: 1')
    else await checkpoints.restore()
    await checkpoints.ensure('2')
    return told
  }
  const grown = (): World => {
    const w = world()
    for (const n of [2, 3]) w.git('commit', '-q', '--allow-empty', '-m', `c${n}`)
    w.git('clone', '-q', '--bare', '.', '../away')
    w.git('remote', 'add', 'origin', `file://${w.root}/away`)
    return w
  }

  it('O10: git fetch --depth=1 leaves the history of the user as long as it was', async () => {
    const w = grown()
    const told = await attempt(w, () => w.git('fetch', '-q', '--depth=1', 'origin', 'main'))
    expect([w.git('rev-list', '--count', 'main').trim(), existsSync(inGit(w, 'shallow'))]).toEqual([
      '3',
      false,
    ])
    expect(told.join()).toContain('the history was cut short while #1 ran')
  })

  it('O10: what was fetched without its history stays cut short, and the command is told', async () => {
    const w = grown()
    const more = ['-C', '../away', 'commit-tree', '-p', 'main', '-m']
    const fourth = w.git(...more, 'c4', 'main^{tree}').trim()
    w.git('-C', '../away', 'update-ref', 'refs/heads/main', fourth)
    w.git('-C', '../away', 'update-ref', 'refs/heads/main', w.git(...more, 'c5', 'main^{tree}').trim())
    const told = await attempt(w, () =>
      w.git('fetch', '-q', '--depth=1', 'origin', 'main:refs/remotes/origin/main'),
    )
    expect(told.join()).toContain('git fetch --unshallow')
    expect([w.git('rev-list', '--count', 'main').trim(), w.git('fsck', '--no-dangling')]).toEqual(['3', ''])
    w.git('fetch', '-q', '--unshallow')
    expect(w.git('rev-list', '--count', 'origin/main').trim()).toBe('5')
  })

  it('O10: objects that are borrowed from another folder are told, with the command that makes the repository whole', async () => {
    const w = grown()
    const told = await attempt(w, () => {
      w.write('.git/objects/info/alternates', `${w.root}/away/objects\n`)
      w.git('repack', '-adlq')
    })
    const command = /has them all: (.*)$/.exec(told.find((line) => line.includes('borrow')) ?? '')?.[1]
    execFileSync('sh', ['-c', command ?? 'false'], { cwd: w.dir, env: w.env, stdio: 'ignore' })
    rmSync(join(w.root, 'away'), { recursive: true })
    expect([w.git('rev-list', '--count', 'main').trim(), w.git('fsck', '--no-dangling')]).toEqual(['3', ''])
  })
})

describe('what the user does beside the loop', () => {
  const beside: [string, (w: World) => void][] = [
    ['git remote add', (w) => w.git('remote', 'add', 'origin', 'https://example.org/a.git')],
    [
      'git push -u',
      (w) => (
        w.git('config', 'branch.main.remote', 'x'),
        w.git('config', 'branch.main.merge', 'refs/heads/main')
      ),
    ],
    ['git branch --edit-description', (w) => w.git('config', 'branch.main.description', 'wichtig: Größe')],
    ['git config user.email', (w) => w.git('config', 'user.email', 'other@example.org')],
  ]
  it.each(beside)('O12, M3: %s stays, byte for byte; only a name for commits is told', async (what, deed) => {
    const w = prepared()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    deed(w)
    const after = config(w)
    const kept = await checkpoints.keep(1)
    await checkpoints.restore()
    expect(config(w)).toBe(after)
    const told = 'user.email = other@example.org was set in .git/config while the attempt ran'
    expect([...kept.warnings, ...warnings(w)]).toEqual(
      what === 'git config user.email' ? [expect.stringContaining(told)] : [],
    )
  })

  it('M3: it stays also where the agent has set what git would run; that goes, and the file keeps its mode', async () => {
    const w = prepared()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    for (const [, deed] of beside) deed(w)
    const wanted = w.git('config', '--file', '.git/config', '--list')
    w.git('config', 'filter.x.clean', 'grep -v OUTPUT')
    w.git('config', 'core.bare', 'true')
    await checkpoints.keep(1)
    expect(w.git('config', '--file', '.git/config', '--list')).toBe(wanted)
    expect(statSync(inGit(w, 'config')).mode & 0o777).toBe(0o600)
    await checkpoints.restore()
    expect(warnings(w)).toEqual([
      expect.stringMatching(
        /^changed while #1 ran, and put back: .*filter\.x\.clean = grep -v OUTPUT.*As it was then: \.git\/ralph\/aside/,
      ),
    ])
    expect(warnings(w)[0]).not.toMatch(/agent|remote\.origin/)
  })
})

it('section 6.8: settings of mode 0600 with a token in them are 0600 when they come back, and so is what is kept aside', async () => {
  const w = prepared()
  w.git('config', 'http.https://example.org.extraheader', 'AUTHORIZATION: basic c2VjcmV0')
  const checkpoints = w.checkpoints()
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  const before = config(w)
  w.write('.git/config', 'garbage ][')
  await checkpoints.keep(1)
  await checkpoints.restore()
  expect(config(w)).toBe(before)
  expect(statSync(inGit(w, 'config')).mode & 0o777).toBe(0o600)
  expect(JSON.stringify(w.journal)).not.toContain('c2VjcmV0')
  expect(
    execFileSync('grep', ['-rlE', 'c2VjcmV0', inGit(w, 'ralph')], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map((file) => statSync(file).mode & 0o777),
  ).toEqual([0o600])
})

it('M3: a kill between keeping aside and putting back loses neither version', async () => {
  const w = prepared()
  const checkpoints = w.checkpoints()
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  const before = obeyed(w)
  w.git('config', 'alias.a', 'b')
  w.write('.git/hooks/post-checkout', 'agents', 0o755)
  // One of the two is back; then ralph is killed, with git's lock in its hand.
  await checkpoints.keep(1)
  w.write('.git/hooks/post-checkout', 'agents', 0o755)
  w.write('.git/config.lock', 'ralph 999999999\n')
  await w.checkpoints().keep(1)
  await w.checkpoints().save('1', 'checkpoint: 1')
  expect(obeyed(w)).toEqual(before)
  expect(warnings(w)).toEqual([expect.stringMatching(/alias\.a = b.*hooks\/post-checkout \(new\)/)])
  w.git('config', 'user.name', 'still works')
})

describe('taking over what a complete attempt had changed', () => {
  async function attempt(
    w: World,
    n: number,
    deed: () => void,
    then: 'save' | 'restore' = 'save',
  ): Promise<void> {
    const checkpoints = w.checkpoints()
    await checkpoints.ensure('1')
    deed()
    w.write(`work-${n}.md`, 'w')
    await checkpoints.keep(n)
    await (then === 'save' ? checkpoints.save('1', `checkpoint: ${n}`) : checkpoints.restore())
  }

  it('O10: settings, new, changed and removed hooks are as the attempt had left them, by the word of the user alone', async () => {
    const w = prepared()
    await w.checkpoints().start('start')
    const before = obeyed(w)
    let after = before
    await attempt(w, 1, () => {
      w.git('config', 'core.hooksPath', '.husky/_')
      w.write('.git/hooks/post-merge', '#!/bin/sh\n', 0o755)
      w.write('.git/hooks/pre-commit', '#!/bin/sh\nnpm test\n', 0o755)
      rmSync(inGit(w, 'hooks/post-commit'))
      after = obeyed(w)
    })
    expect(obeyed(w)).toEqual(before)
    expect(warnings(w)).toEqual([
      expect.stringMatching(
        /core\.hookspath = \.husky\/_ \(it was not set\).*To take it over: ralph finish demo --accept-config$/,
      ),
    ])
    expect(await accept(w)).toHaveLength(4)
    // Git lists names in lower case.
    const lower = (files: Record<string, string>): unknown => JSON.parse(JSON.stringify(files).toLowerCase())
    expect(lower(obeyed(w))).toEqual(lower(after))
    expect(await accept(w)).toEqual([])
  })

  it('O10: what a failed attempt had changed is never taken over; what the user has changed since stays', async () => {
    const w = prepared()
    await w.checkpoints().start('start')
    await attempt(w, 1, () => w.git('config', 'alias.bad', 'x'), 'restore')
    await attempt(w, 2, () => w.git('config', 'alias.good', 'agents'))
    w.git('config', 'alias.good', 'mine')
    expect(await accept(w)).toEqual([
      '.git/config: alias.good was left as it is now: it has been changed since',
    ])
    expect(w.git('config', '--get-regexp', '^alias')).toBe('alias.good mine\n')
  })

  it('O10: the same change again is told shortly', async () => {
    const w = prepared()
    await w.checkpoints().start('start')
    for (const n of [1, 2]) await attempt(w, n, () => w.git('config', 'alias.a', 'b'))
    const [first = '', second = ''] = warnings(w)
    expect(second).toBe('changed while #2 ran, as while #1 ran, and restored: .git/config (alias.a = b)')
    expect(second.length).toBeLessThan(first.length)
    await accept(w)
    expect(w.git('config', 'alias.a')).toBe('b\n')
  })
})

describe('another loop in the same repository', () => {
  it('O12, M3: what it put back of its own agent is not brought again by a loop whose attempt began in between', async () => {
    const w = prepared()
    const first = w.checkpoints()
    await first.start('start')
    await first.ensure('1')
    const before = obeyed(w)
    w.git('config', 'alias.bad', '!x')
    w.write('.git/hooks/post-merge', 'bad', 0o755)
    const second = await beside(w)
    await first.keep(1)
    expect(obeyed(w)).toEqual(before)
    await second.keep(1)
    await second.restore()
    expect(obeyed(w)).toEqual(before)
  })

  it('O12, M3: what the user takes over for one loop is not undone by the other', async () => {
    const w = prepared()
    const first = w.checkpoints()
    await first.start('start')
    await first.ensure('1')
    w.git('config', 'alias.good', 'status')
    w.write('work.md', 'w')
    await first.keep(1)
    await first.save('1', 'checkpoint: 1')
    const second = await beside(w)
    await accept(w)
    await second.keep(1)
    await second.restore()
    expect(w.git('config', 'alias.good')).toBe('status\n')
  })

  async function beside(w: World): Promise<ReturnType<World['checkpoints']>> {
    const journal: LoopEvent[] = []
    const second = w.checkpoints('stash', {
      change: 'other',
      writeAhead: (body) => {
        journal.push({ v: 1, seq: journal.length, time: '', change_id: 'other', ...body })
        return Promise.resolve()
      },
      memory: () => journal.reduce(remember, blankMemory),
    })
    await second.start('start')
    await second.ensure('1')
    return second
  }
})

it('O19, M3: a submodule that the attempt adds or moves works for the gates, and a hook in one that was there is put back', async () => {
  const w = prepared()
  const add = (path: string): string =>
    w.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', join(w.root, 'lib'), path)
  execFileSync('cp', ['-a', w.dir, join(w.root, 'lib')])
  add('there')
  w.git('commit', '-qm', 'a submodule')
  const checkpoints = w.checkpoints()
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  add('added')
  w.git('mv', 'there', 'moved')
  w.write('.git/modules/there/hooks/post-checkout', 'bad', 0o755)
  w.git('-C', 'moved', 'config', 'core.fsmonitor', 'bad')
  await checkpoints.keep(1)
  expect(existsSync(inGit(w, 'modules/there/hooks/post-checkout'))).toBe(false)
  expect(w.git('config', '--file', '.git/modules/there/config', '--list')).not.toContain('fsmonitor')
  for (const path of ['added', 'moved']) expect(w.git('-C', path, 'status', '--porcelain')).toBe('')
  expect(w.git('config', '--file', '.git/modules/added/config', 'core.worktree')).toBe('../../../added\n')
})

it('M1, O15: a filter that a complete attempt installs changes nothing of the user’s on a later revert', async () => {
  const w = prepared()
  const notebook = 'code\nOUTPUT\n'
  w.write('user.ipynb', notebook)
  const checkpoints = w.checkpoints()
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  w.git('config', 'filter.strip.clean', 'grep -v OUTPUT')
  w.write('.gitattributes', '*.ipynb filter=strip\n')
  w.write('user.ipynb', `${notebook}more\n`)
  await checkpoints.keep(1)
  await checkpoints.save('1', 'checkpoint: 1')
  await checkpoints.ensure('2')
  writeFileSync(join(w.dir, 'user.ipynb'), 'gone')
  await checkpoints.keep(2)
  await checkpoints.restore()
  expect(w.read('user.ipynb')).toBe(`${notebook}more\n`)
})
