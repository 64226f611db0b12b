// Agents that destroy on purpose or by mishap what git alone would give up: pruned objects, broken repositories, hidden files.
import { describe, expect, it } from 'vitest'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import { join } from 'node:path'
import { worldOfTest as world, picture, type Strategy, type World } from './world.ts'

function prune(w: World): void {
  w.git('reflog', 'expire', '--expire=now', '--expire-unreachable=now', '--all')
  w.git('gc', '-q', '--prune=now')
}

describe.each<Strategy>(['branch', 'stash'])('an agent that prunes (%s)', (strategy) => {
  it('G3: branches, tags and stash entries that it deleted come back although it pruned', async () => {
    const w = world()
    w.git('checkout', '-q', '-b', 'feat')
    w.git('commit', '-q', '--allow-empty', '-m', 'unmerged')
    w.git('tag', '-a', 'v1', '-m', 'annotated')
    w.git('checkout', '-q', 'main')
    w.write('a.txt', 'older\n')
    w.git('stash', 'push', '-q', '-m', 'older')
    w.write('a.txt', 'newer\n')
    w.git('stash', 'push', '-q', '-m', 'newer')
    w.write('mine.txt', 'mine')
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const before = picture(w)
    w.git('branch', '-q', '-D', 'feat')
    w.git('tag', '-d', 'v1')
    w.git('stash', 'clear')
    if (strategy === 'branch') w.git('branch', '-q', '-m', 'ralph/demo', 'renamed')
    prune(w)
    const { warnings } = await checkpoints.keep(1)
    expect(warnings.join('\n')).toContain('the agent deleted feat; it is back')
    if (strategy === 'branch')
      expect(warnings.join('\n')).toContain(
        'ralph/demo was deleted or renamed while the agent worked, by whom ralph cannot tell; it is back',
      )
    await checkpoints.restore()
    expect(picture(w)).toEqual(before)
    expect(w.git('fsck', '--connectivity-only')).not.toContain('missing')
    await checkpoints.ensure('1')
    await checkpoints.finish('cleanup')
    expect(w.git('for-each-ref', 'refs/ralph/demo/pins')).toBe('')
    expect(w.git('rev-parse', 'feat^{commit}', 'v1^{tag}')).toMatch(/\w/)
  })

  it('O12, G4: an entry that the user made beside it and it dropped comes back; one that the user dropped does not', async () => {
    const w = world()
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const push = (by: 'git' | 'user', name: string): string => {
      w.write('a.txt', `${name}\n`)
      return w[by]('stash', 'push', '-q', '-m', name)
    }
    const list = (): string[] =>
      w
        .user('stash', 'list', '--format=%gs')
        .split('\n')
        .filter((name) => name.startsWith('On '))
    push('git', 'agent')
    push('user', 'beside')
    w.git('stash', 'pop', '-q')
    w.git('checkout', '-q', '.')
    w.git('stash', 'pop', '-q')
    const { warnings } = await checkpoints.keep(1)
    expect(list()).toEqual([expect.stringMatching(/: beside$/)])
    expect(warnings).toContain('the agent dropped stash entries; they are back')
    await checkpoints.restore()
    await checkpoints.ensure('1')
    push('git', 'agent')
    w.git('stash', 'pop', '-q')
    push('user', 'away')
    w.user('stash', 'drop', '-q')
    await checkpoints.keep(2)
    expect(list()).toHaveLength(1)
  })

  it('G3: what is gone for good is reported, and neither keeps the rest away nor stops later commands', async () => {
    const w = world()
    for (const name of ['feat', 'other']) {
      w.git('branch', name, w.git('commit-tree', '-p', 'main', '-m', name, 'main^{tree}').trim())
    }
    w.write('a.txt', 'mine\n')
    w.git('stash', 'push', '-q', '-m', 'mine')
    const stashed = w.git('rev-parse', 'stash').trim()
    const feat = w.git('rev-parse', 'feat').trim()
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.git('branch', '-q', '-D', 'feat', 'other')
    w.git('stash', 'clear')
    for (const hash of [feat, stashed]) w.git('update-ref', '-d', `refs/ralph/demo/pins/${hash}`)
    prune(w)
    const { warnings } = await checkpoints.keep(1)
    expect(warnings.filter((warning) => warning.includes('destroyed'))).toHaveLength(2)
    await checkpoints.restore()
    expect(w.git('branch', '--format=%(refname:short)')).toContain('other')
    await checkpoints.ensure('1')
    w.write('work.txt', 'w')
    await checkpoints.keep(2)
    await checkpoints.save('1', 'checkpoint: 1')
    await checkpoints.finish('cleanup')
    expect(w.read('work.txt')).toBe('w')
  })
})

describe.each<Strategy>(['branch', 'stash'])('files that rules of the checkpoint ignore (%s)', (strategy) => {
  it('G16: build output, and what joins a folder that ignored itself before, is neither kept nor removed', async () => {
    const w = world()
    w.write('.venv/.gitignore', '*\n')
    w.write('.venv/python', 'p')
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('build/out', 'b')
    w.write('src/x.log', 'l')
    w.write('.venv/package', 'p')
    w.write('.gitignore', 'first line\n*.log\n.env\nbuild/\n')
    const kept = await checkpoints.keep(1)
    expect(w.git('diff', '--name-only', 'HEAD', kept.ref)).not.toMatch(/build|log|venv/)
    await checkpoints.restore()
    expect([w.read('build/out'), w.read('src/x.log'), w.read('.venv/package')]).toEqual(['b', 'l', 'p'])
  })

  it('G16: a complete story obeys the ignore rules that it brings, and keeps the files', async () => {
    const w = world()
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('.gitignore', '*.log\n.env\nbuild/\nnode_modules/\n')
    w.write('node_modules/dep/index.js', 'd')
    await checkpoints.keep(1)
    const { commit } = await checkpoints.save('1', 'checkpoint: 1')
    expect(w.git('ls-tree', '-r', '--name-only', commit)).not.toContain('node_modules')
    await checkpoints.ensure('2')
    await checkpoints.keep(2)
    await checkpoints.restore()
    expect(w.read('node_modules/dep/index.js')).toBe('d')
  })

  it.each(['a complete story', 'the user, between two stories'])(
    'G16: a file that %s has un-ignored is in no commit, and a failed attempt can neither delete nor change it',
    async (who) => {
      const w = world()
      w.write('notes.log', 'precious')
      w.write('deep/er/other.log', 'precious too')
      chmodSync(join(w.dir, 'notes.log'), 0o600)
      const checkpoints = w.checkpoints(strategy)
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      if (who === 'a complete story') w.write('.gitignore', 'node_modules/\n')
      await checkpoints.keep(1)
      await checkpoints.save('1', 'checkpoint: 1')
      if (who !== 'a complete story') w.write('.gitignore', 'node_modules/\n')
      const { commit } = await checkpoints.ensure('2')
      expect(w.git('ls-tree', '-r', '--name-only', commit)).not.toContain('.log')
      rmSync(join(w.dir, 'notes.log'))
      w.write('deep/er/other.log', 'by the agent')
      await checkpoints.keep(2)
      await checkpoints.restore()
      expect([w.read('notes.log'), w.read('deep/er/other.log')]).toEqual(['precious', 'precious too'])
      expect(statSync(join(w.dir, 'notes.log')).mode & 0o777).toBe(0o600)
      const told = w.journal.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
      expect(told).toContain('notes.log, which is no longer ignored, was deleted and is back')
      const theirs = told.flatMap((text) => /other\.log.*(git cat-file blob \w+)$/.exec(text)?.[1] ?? [])
      expect(execFileSync('sh', ['-c', theirs[0] ?? 'false'], { cwd: w.dir, encoding: 'utf8' })).toBe(
        'by the agent',
      )
    },
  )

  it('G16: of what a complete story hides, a failed attempt can take neither a file nor a link nor an empty folder of the user’s away', async () => {
    const w = world()
    w.write('un.txt', 'precious')
    symlinkSync('un.txt', join(w.dir, 'lnk'))
    symlinkSync('nowhere', join(w.dir, 'other'))
    mkdirSync(join(w.dir, 'emp/ty'), { recursive: true })
    w.write('.claude/loop-state.json', '{}')
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('.gitignore', '*\n')
    w.write('work.txt', 'w')
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    for (const n of [2, 3]) {
      await checkpoints.ensure('2')
      for (const path of ['un.txt', 'lnk', 'other', 'emp'])
        rmSync(join(w.dir, path), { recursive: true, force: true })
      w.write('other', 'by the agent')
      await checkpoints.keep(n)
      await checkpoints.restore()
      const links = ['lnk', 'other'].map((path) => readlinkSync(join(w.dir, path)))
      expect([w.read('un.txt'), links]).toEqual(['precious', ['un.txt', 'nowhere']])
      expect(readdirSync(join(w.dir, 'emp/ty'))).toEqual([])
    }
    // Named is what the story itself has hidden, and nothing that was there before, or is back.
    const told = w.journal.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
    expect(told).toEqual([
      expect.stringContaining('files that they hide: work.txt. No checkpoint holds them'),
    ])
  })

  it('G16: a folder of the user’s that a complete story made a repository comes back with its files', async () => {
    const w = world()
    w.write('dir/x/y.txt', 'precious')
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.git('init', '-q', 'dir')
    w.write('work.txt', 'w')
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    const { commit } = await checkpoints.ensure('2')
    expect(w.git('ls-tree', '-r', '--name-only', commit)).toContain('dir/x/y.txt')
    rmSync(join(w.dir, 'dir'), { recursive: true })
    await checkpoints.keep(2)
    await checkpoints.restore()
    expect(w.read('dir/x/y.txt')).toBe('precious')
    w.write('dir/x/y.txt', 'by the agent')
    await checkpoints.keep(3)
    await checkpoints.restore()
    expect(w.read('dir/x/y.txt')).toBe('precious')
  })

  it.each(['files', 'commits', 'commits of everything'])(
    'G16: what a story adds to a folder that it un-ignores is in its checkpoint (%s), what was there before is named and is not',
    async (how) => {
      const w = world()
      w.write('build/old', 'private')
      const checkpoints = w.checkpoints(strategy)
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      const work = (text: string): void => {
        w.write('.gitignore', '*.log\n')
        w.write('build/x.js', text)
        w.write('build/deep/y.js', text)
      }
      work('failed')
      const failed = await checkpoints.keep(1)
      expect(w.git('ls-tree', '-r', '--name-only', failed.ref, 'build')).toBe('build/deep/y.js\nbuild/x.js\n')
      await checkpoints.restore()
      expect(readdirSync(join(w.dir, 'build'))).toEqual(['old'])
      await checkpoints.ensure('1')
      work('work')
      w.write('build/old', 'changed')
      if (how === 'commits') w.git('add', '.gitignore', 'build/x.js', 'build/deep')
      if (how === 'commits of everything') w.git('add', '-A')
      if (how !== 'files') w.git('commit', '-qm', 'my work')
      const { refused, warnings } = await checkpoints.keep(2, true)
      expect(refused).toBe(undefined)
      expect(warnings.join()).toContain('in no checkpoint: build/old.')
      const { commit } = await checkpoints.save('1', 'checkpoint: 1')
      expect(w.git('ls-tree', '-r', '--name-only', commit, 'build')).toBe('build/deep/y.js\nbuild/x.js\n')
      expect(w.git('log', '--format=', '--name-only', commit)).not.toContain('build/old')
      await checkpoints.ensure('2')
      w.write('build/x.js', 'edited')
      w.write('build/z.js', 'z')
      expect((await checkpoints.keep(3, true)).warnings.join()).not.toContain('in no checkpoint')
      const { commit: second } = await checkpoints.save('2', 'checkpoint: 2')
      expect(w.git('ls-tree', '-r', '--name-only', second, 'build')).toContain('build/z.js')
      expect(w.git('show', `${second}:build/x.js`)).toBe('edited')
      expect(w.read('build/old')).toBe('changed')
    },
  )

  it('G16: where nobody can tell what is new in such a folder, the attempt does not count and the files are named', async () => {
    const w = world()
    w.write('.gitignore', 'node_modules/\n')
    w.git('commit', '-qam', 'rules')
    w.write('node_modules/dep/index.js', 'd')
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('.gitignore', '')
    w.write('node_modules/mine.js', 'work')
    const { refused } = await checkpoints.keep(1, true)
    expect(refused).toContain('git sees node_modules/mine.js now')
    await checkpoints.restore()
    expect(w.read('node_modules/mine.js')).toBe('work')
  })

  it('G16: files of a repository whose .git the agent deletes stay out, what it adds there is in the checkpoint', async () => {
    const w = world()
    w.git('init', '-q', 'nest')
    w.write('nest/n', 'n')
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    rmSync(join(w.dir, 'nest/.git'), { recursive: true })
    w.write('nest/more', 'work')
    const { refused, changed, warnings } = await checkpoints.keep(1, true)
    expect([refused, changed]).toEqual([undefined, true])
    expect(warnings.join()).toContain('the repository nest/ lost its .git')
    const { commit } = await checkpoints.save('1', 'checkpoint: 1')
    expect(w.git('ls-tree', '-r', '--name-only', commit, 'nest/')).toBe('nest/more\n')
    expect(w.read('nest/n')).toBe('n')
  })

  it('G16: a file of the user that a complete story made ignored comes back from a failed attempt all the same', async () => {
    const w = world()
    w.write('untracked.txt', 'only copy')
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('.gitignore', 'untracked.txt\n')
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    for (const n of [2, 3]) {
      await checkpoints.ensure('2')
      if (n === 2) w.write('untracked.txt', 'broken')
      else rmSync(join(w.dir, 'untracked.txt'))
      await checkpoints.keep(n)
      await checkpoints.restore()
      expect(w.read('untracked.txt')).toBe('only copy')
    }
  })

  it('G16: of un-ignored files beyond what ralph keeps, the smallest are kept, and it is said once how many are not', async () => {
    const w = world()
    w.write('a.log', Buffer.alloc(20_000_001))
    for (let n = 1; n <= 12; n++) w.write(`small/${n}.log`, `precious ${n}`)
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('.gitignore', '')
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    for (const n of [2, 3]) {
      await checkpoints.ensure('2')
      rmSync(join(w.dir, 'small'), { recursive: true })
      await checkpoints.keep(n)
      await checkpoints.restore()
      expect(readdirSync(join(w.dir, 'small'))).toHaveLength(12)
    }
    const told = w.journal.flatMap((event) =>
      event.type === 'warning' && event.code === 'unignored' ? [event.message] : [],
    )
    expect(told.filter((text) => /^1 of the files .* are not kept .*: a\.log$/.test(text))).toHaveLength(1)
    expect(told.filter((text) => text.includes('so were 2 more'))).toHaveLength(2)
    expect(told).toHaveLength(1 + 2 * 11)
  })
})

describe.each<Strategy>(['branch', 'stash'])(
  'folders of the user that the agent hides as a whole (%s)',
  (strategy) => {
    it.each(['.gitignore', '.git/info/exclude', '.git/own-rules', 'data/.gitignore'])(
      'G16: by %s: what was ignored or protected in them stays',
      async (rules) => {
        const w = world()
        w.write('.gitignore', 'data/*\n')
        w.git('commit', '-qam', 'rules')
        w.write('data/user.db', 'precious')
        w.write('data/sub/user.db', 'precious')
        w.write('.claude/loop-state.json', '{}')
        w.write('.git/info/exclude', '.claude/loop-state.json\n')
        const checkpoints = w.checkpoints(strategy)
        await checkpoints.start('start')
        await checkpoints.ensure('1')
        w.write(rules, rules.startsWith('data') ? '*\n' : 'data/\n.claude/\n*.bar\n')
        if (rules === '.git/own-rules') w.git('config', 'core.excludesFile', rules)
        w.write('data/agent.db', 'a')
        w.write('.claude/agent.txt', 'a')
        w.write('new.bar', 'a')
        const kept = await checkpoints.keep(1)
        const names = w.git('ls-tree', '-r', '--name-only', kept.ref)
        expect(names).toContain('new.bar')
        expect(names).not.toMatch(/user\.db|loop-state/)
        await checkpoints.restore()
        expect([w.read('data/user.db'), w.read('data/sub/user.db')]).toEqual(['precious', 'precious'])
        expect(w.read('.claude/loop-state.json')).toBe('{}')
        expect(() => w.read('new.bar')).toThrow('ENOENT')
      },
    )
  },
)

it('G16: a complete attempt that committed an ignored file leaves it out of the history of the branch', async () => {
  const w = world()
  w.write('.env', 'SECRET')
  const checkpoints = w.checkpoints()
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  w.write('work.txt', 'w')
  w.git('rm', '-q', '.gitignore')
  w.git('add', '-Af')
  w.git('commit', '-qm', 'everything')
  w.git('commit', '-q', '--allow-empty', '-m', 'more')
  const kept = await checkpoints.keep(1)
  expect(kept.warnings.join()).toContain('.env')
  await checkpoints.save('1', 'checkpoint: 1')
  expect(w.git('log', '--format=%s', '--name-only', 'ralph/demo')).not.toMatch(/everything|\.env/)
  expect(w.git('show', 'ralph/demo:work.txt')).toBe('w')
  expect(w.git('log', '--format=%s', kept.ref)).toContain('everything')
  expect(w.read('.env')).toBe('SECRET')
  await checkpoints.ensure('2')
  await checkpoints.finish('cleanup')
  expect(w.read('.env')).toBe('SECRET')
})

describe.each<Strategy>(['branch', 'stash'])('what git does not keep of a file (%s)', (strategy) => {
  const modeOf = (w: World, path: string): string => (statSync(join(w.dir, path)).mode & 0o777).toString(8)

  it('G27: a private file comes back as private as it was', async () => {
    const w = world()
    w.write('id_key', 'k', 0o600)
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('made.key', 'm', 0o600)
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    await checkpoints.ensure('2')
    rmSync(join(w.dir, 'src'), { recursive: true })
    w.write('src', 'a file where a folder was')
    await checkpoints.keep(2)
    await checkpoints.save('2', 'checkpoint: 2')
    await checkpoints.ensure('3')
    for (const name of ['id_key', 'made.key']) rmSync(join(w.dir, name))
    await checkpoints.keep(3)
    await checkpoints.restore()
    expect([modeOf(w, 'id_key'), modeOf(w, 'made.key')]).toEqual(['600', '600'])
  })

  it('G27: executable bits come back where core.fileMode is off', async () => {
    const w = world()
    w.git('config', 'core.fileMode', 'false')
    w.write('un.txt', 'u', 0o755)
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    rmSync(join(w.dir, 'un.txt'))
    chmodSync(join(w.dir, 'src/b.txt'), 0o755)
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect([modeOf(w, 'un.txt'), modeOf(w, 'src/b.txt')]).toEqual(['755', '644'])
  })
})

describe.each<Strategy>(['branch', 'stash'])('what is no file any more (%s)', (strategy) => {
  it('G2: a tracked file that the agent turned into a pipe is a file again', async () => {
    const w = world()
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const before = picture(w)
    for (const name of ['a.txt', 'src/b.txt']) rmSync(join(w.dir, name))
    execFileSync('mkfifo', [join(w.dir, 'a.txt'), join(w.dir, 'src/b.txt')])
    const kept = await checkpoints.keep(1)
    expect(w.git('ls-tree', '-r', '--name-only', kept.ref)).not.toContain('a.txt')
    await checkpoints.restore()
    expect(picture(w)).toEqual(before)
  })
})

describe.each<Strategy>(['branch', 'stash'])('an agent that breaks the repository (%s)', (strategy) => {
  it.each<[string, (w: World) => void]>([
    ['core.bare', (w) => w.git('config', 'core.bare', 'true')],
    ['core.worktree', (w) => w.git('config', 'core.worktree', '/nowhere')],
    ['the settings', (w) => w.write('.git/config', 'garbage ][')],
    ['the index', (w) => w.write('.git/index', 'garbage')],
    ['HEAD', (w) => w.write('.git/HEAD', 'garbage')],
    ['HEAD, removed', (w) => rmSync(join(w.dir, '.git/HEAD'))],
    [
      'the attributes',
      (w) => {
        w.git('config', 'filter.up.clean', 'tr a-z A-Z')
        w.write('.git/info/attributes', '*.txt filter=up\n')
        w.write('.gitattributes', '*.txt filter=up\n')
      },
    ],
  ])(
    'G14: %s: the attempt is kept, the revert is exact, and plain git works again',
    async (_what, breaks) => {
      const w = world()
      w.write('mine.txt', 'mine')
      const checkpoints = w.checkpoints(strategy)
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      const before = picture(w)
      w.write('work.md', 'w')
      breaks(w)
      const kept = await checkpoints.keep(1)
      expect(w.git('show', `${kept.ref}:work.md`)).toBe('w')
      await checkpoints.restore()
      expect(picture(w)).toEqual(before)
      expect(w.git('rev-parse', '--show-toplevel').trim()).toBe(w.dir)
      await checkpoints.ensure('1')
    },
  )
})

it('G27: a name with control characters is told on one line, escaped', async () => {
  const w = world()
  w.write('new\nline\u001b[31m.pem', 'x')
  const { warnings } = await w.checkpoints().preflight('start')
  expect(warnings).toEqual([expect.stringMatching(/: new\\nline\\x1b\[31m\.pem$/)])
})

it('G3: a git directory that was replaced during an attempt is named as such, and the old one goes on once it is back', async () => {
  const w = world()
  const checkpoints = w.checkpoints()
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  w.write('work.txt', 'w')
  renameSync(join(w.dir, '.git'), join(w.dir, '.git.old'))
  w.user('init', '-q')
  await expect(checkpoints.keep(1)).rejects.toThrow(/is not the git directory that the loop began with/)
  expect(w.read('work.txt')).toBe('w')
  rmSync(join(w.dir, '.git'), { recursive: true })
  renameSync(join(w.dir, '.git.old'), join(w.dir, '.git'))
  const { ref } = await checkpoints.keep(1)
  expect(w.git('show', `${ref}:work.txt`)).toBe('w')
})

describe.each<Strategy>(['branch', 'stash'])('a repository that is unlike most (%s)', (strategy) => {
  const odd: Record<string, (w: World) => void> = {
    'HEAD is a link': (w) => {
      rmSync(join(w.dir, '.git', 'HEAD'))
      symlinkSync('refs/heads/main', join(w.dir, '.git', 'HEAD'))
      w.git('config', 'core.preferSymlinkRefs', 'true')
    },
    'git looks at size and time alone': (w) => {
      w.git('config', 'core.trustctime', 'false')
      w.git('config', 'core.checkStat', 'minimal')
    },
    'what is staged goes through a filter': (w) => {
      w.git('config', 'filter.strip.clean', 'sed /OUTPUT/d')
      w.write('.git/info/attributes', '*.nb filter=strip\n')
      w.write('staged.nb', 'code\nOUTPUT of the user\n')
      w.git('add', 'staged.nb')
    },
    'every file is a large one': (w) => {
      w.git('config', 'core.bigFileThreshold', '1k')
      w.write('big.bin', 'x'.repeat(5000))
      w.write('bigger.bin', 'y'.repeat(9000))
    },
  }

  it.each(Object.keys(odd))(
    'O16, G2: %s: a failed attempt goes back whole, and the cleanup ends where it began',
    async (what) => {
      const w = world()
      w.write('mine.txt', 'mine')
      odd[what]?.(w)
      const checkpoints = w.checkpoints(strategy)
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      const before = picture(w)
      for (const path of ['a.txt', 'mine.txt']) {
        const { atime, mtime } = statSync(join(w.dir, path))
        w.write(path, w.read(path).replaceAll(/[a-z]/g, 'z'))
        utimesSync(join(w.dir, path), atime, mtime)
      }
      rmSync(join(w.dir, 'staged.nb'), { force: true })
      w.git('commit', '-q', '--allow-empty', '-m', 'agent')
      await checkpoints.keep(1)
      await checkpoints.restore()
      expect(picture(w)).toEqual(before)
      await checkpoints.ensure('1')
      await checkpoints.finish('cleanup')
      expect(w.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main\n')
      expect(w.read('mine.txt')).toBe('mine')
    },
  )
})
