// Rows of the hazard table that concern git and are not a matter of revert or finish.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  archiveAttempts,
  cleanAttempts,
  diffAttempt,
  listAttempts,
} from '../../../src/adapters/git/attempt/attempts.ts'
import { bringBack, writeAttempt } from '../../../src/adapters/git/attempt/bring-back.ts'
import { gitIn } from '../../../src/adapters/git/git.ts'
import { excludeFromGit, findRepository } from '../../../src/adapters/git/repository.ts'
import { worldOfTest as world, picture, type World } from './world.ts'

const refused = { exitCode: 2, hint: expect.stringMatching(/\w/) as string }

describe('finding the repository', () => {
  it('G18: from a subdirectory the whole work tree is meant', async () => {
    const w = world()
    const found = await findRepository(join(w.dir, 'src'), { timeoutMs: 10_000, env: w.env })
    expect(found).toEqual({ worktree: w.dir, gitDir: join(w.dir, '.git'), gitCommonDir: join(w.dir, '.git') })
  })

  it('G8: no repository, and a bare one, are refused', async () => {
    const w = world()
    const settings = { timeoutMs: 10_000, env: w.env }
    await expect(findRepository(w.root, settings)).rejects.toMatchObject({
      code: 'not_a_repository',
      ...refused,
    })
    w.git('clone', '-q', '--bare', '.', '../bare')
    await expect(findRepository(join(w.root, 'bare'), settings)).rejects.toMatchObject({
      code: 'not_a_repository',
      ...refused,
    })
  })

  it('the exclude list grows once, after a last line without a newline too', async () => {
    const w = world()
    writeFileSync(join(w.dir, '.git/info/exclude'), '*.swp')
    await excludeFromGit(join(w.dir, '.git'), ['/.claude/loop-state.json*'])
    await excludeFromGit(join(w.dir, '.git'), ['/.claude/loop-state.json*'])
    expect(readFileSync(join(w.dir, '.git/info/exclude'), 'utf8')).toBe('*.swp\n/.claude/loop-state.json*\n')
  })
})

describe('refusals before anything is touched', () => {
  const states: Record<string, (w: World) => void> = {
    'G20: a merge in progress': (w) => {
      w.git('checkout', '-q', '-b', 'side')
      w.write('a.txt', 'side\n')
      w.git('commit', '-qam', 'side')
      w.git('checkout', '-q', 'main')
      w.write('a.txt', 'main\n')
      w.git('commit', '-qam', 'main')
      expect(() => w.git('merge', 'side')).toThrow('merge')
    },
    'G20: a bisect in progress': (w) => w.git('bisect', 'start'),
    'G20: a cherry-pick in progress': (w) => w.git('update-ref', 'CHERRY_PICK_HEAD', 'HEAD'),
    'G20: a rebase in progress': (w) => mkdirSync(join(w.dir, '.git/rebase-merge')),
    'G8: a branch that is another name for one (a symbolic ref)': (w) => {
      w.git('branch', 'trunk')
      w.git('symbolic-ref', 'refs/heads/main', 'refs/heads/trunk')
    },
    'G22: an edit hidden by assume-unchanged': (w) => {
      w.git('update-index', '--assume-unchanged', 'a.txt')
      w.write('a.txt', 'mine\n')
    },
    'G22: an edit hidden by skip-worktree': (w) => {
      w.git('update-index', '--skip-worktree', 'a.txt')
      w.write('a.txt', 'mine\n')
    },
    'G27: a symbolic link where core.symlinks is off: git would write a plain file in its place': (w) => {
      w.git('config', 'core.symlinks', 'false')
      symlinkSync('a.txt', join(w.dir, 'link'))
    },
    'an encoding that wants a byte order mark, on a file without one': (w) => {
      w.write('.gitattributes', '*.u16 working-tree-encoding=UTF-16\n')
      w.write('new.u16', Buffer.from('h\0i\0'))
    },
    'an encoding that wants no byte order mark, on a file with one that is not committed': (w) => {
      w.write('old.u16', Buffer.from('h\0i\0'))
      w.write('.gitattributes', '*.u16 working-tree-encoding=UTF-16LE\n')
      w.git('add', '-A')
      w.git('commit', '-qm', 'encoded')
      w.write('old.u16', Buffer.from('\xff\xfeh\0i\0', 'latin1'))
    },
    'G19, G20: a cherry-pick in progress in a submodule': (w) => {
      w.git('init', '-q', 'sub')
      w.git('-C', 'sub', 'commit', '-q', '--allow-empty', '-m', 'x')
      w.git('add', 'sub')
      w.git('-C', 'sub', 'update-ref', 'CHERRY_PICK_HEAD', 'HEAD')
    },
    'G19: a submodule whose git directory is missing': (w) => {
      w.git('init', '-q', 'sub')
      w.git('-C', 'sub', 'commit', '-q', '--allow-empty', '-m', 'x')
      w.git('add', 'sub')
      rmSync(join(w.dir, 'sub/.git'), { recursive: true })
      w.write('sub/.git', 'gitdir: ../.git/modules/nowhere\n')
    },
    'G19: a submodule whose git directory lies elsewhere': (w) => {
      w.git('init', '-q', '--separate-git-dir', '../elsewhere', 'sub')
      w.git('-C', 'sub', 'commit', '-q', '--allow-empty', '-m', 'x')
      w.git('add', 'sub')
    },
    'G19, G22: an edit hidden by assume-unchanged in a submodule': (w) => {
      w.git('init', '-q', 'sub')
      w.write('sub/x', 'x\n')
      w.git('-C', 'sub', 'add', 'x')
      w.git('-C', 'sub', 'commit', '-q', '-m', 'x')
      w.git('add', 'sub')
      w.git('-C', 'sub', 'update-index', '--assume-unchanged', 'x')
      w.write('sub/x', 'mine\n')
    },
    'G23: a branch called ralph': (w) => w.git('branch', 'ralph'),
    'G23: a branch below the one to be made': (w) => w.git('branch', 'ralph/demo/x'),
    'G23: the branch is checked out in another work tree': (w) =>
      w.git('worktree', 'add', '-q', '-b', 'ralph/demo', '../other'),
    "G6: HEAD is on another change's branch": (w) => w.git('checkout', '-q', '-b', 'ralph/other'),
  }

  it.each(Object.entries(states))('%s', async (_name, make) => {
    const w = world()
    make(w)
    const before = picture(w)
    await expect(w.checkpoints().preflight('fresh')).rejects.toMatchObject({
      code: 'repository_state',
      ...refused,
    })
    expect(picture(w)).toEqual(before)
    expect(w.journal).toEqual([])
  })

  it.each(['a/b', 'a..b', 'a b', '', 'x.lock', 'a~1', '-'])('G23: the change name "%s"', async (change) => {
    const w = world()
    const outcome = w.checkpoints('branch', { change }).preflight('start')
    if (change === '-') await expect(outcome).resolves.toMatchObject({ branch: 'ralph/-' })
    else await expect(outcome).rejects.toMatchObject({ code: 'bad_name', ...refused })
  })

  it('G8: the stash strategy needs a commit', async () => {
    const w = world({ commit: false })
    await expect(w.checkpoints('stash').preflight('start')).rejects.toMatchObject(refused)
    await expect(w.checkpoints('stash').preflight('resume')).rejects.toMatchObject(refused)
  })

  it('a spawn without a checkpoint is refused; a resume without one begins where the user stands', async () => {
    const w = world()
    for (const strategy of ['branch', 'stash'] as const) {
      await expect(w.checkpoints(strategy).ensure('1')).rejects.toMatchObject({
        code: 'nothing_to_resume',
        ...refused,
      })
    }
    expect((await w.checkpoints().preflight('resume')).originalBranch).toBe('main')
    await w.checkpoints().start('resume')
    expect(w.git('log', '--format=%s')).toBe('initial state\nfirst\n')
  })

  it.each(
    (['--assume-unchanged', '--skip-worktree'] as const).flatMap((flag) =>
      (['branch', 'stash'] as const).map((strategy) => [flag, strategy] as const),
    ),
  )(
    'G22: %s (%s) without an edit is no obstacle, hides no agent’s edit, and comes back at cleanup',
    async (flag, strategy) => {
      const w = world()
      w.git('update-index', flag, 'a.txt')
      const before = picture(w)
      const checkpoints = w.checkpoints(strategy)
      await checkpoints.preflight('start')
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      w.write('a.txt', 'agent\n')
      expect((await checkpoints.keep(1)).changed).toBe(true)
      await checkpoints.restore()
      await checkpoints.finish('cleanup')
      expect(picture(w)).toEqual(before)
    },
  )

  it.each(
    (['--assume-unchanged', '--skip-worktree'] as const).flatMap((flag) =>
      (['branch', 'stash'] as const).map((strategy) => [flag, strategy] as const),
    ),
  )(
    'G22: an edit behind %s (%s) that is made between two attempts is part of the checkpoint, as any other',
    async (flag, strategy) => {
      const w = world()
      const checkpoints = w.checkpoints(strategy)
      await checkpoints.preflight('start')
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      w.git('update-index', flag, 'a.txt')
      w.write('a.txt', 'hidden\n')
      await checkpoints.ensure('2')
      w.write('a.txt', 'agent\n')
      await checkpoints.keep(1)
      await checkpoints.restore()
      expect(w.read('a.txt')).toBe('hidden\n')
    },
  )

  it('G29: huge and secret-looking untracked files, and repositories inside, are listed', async () => {
    const w = world()
    w.write('id_rsa', 'k')
    w.write('conf/.env.local', 'k')
    w.write('.env.example', 'fine')
    w.write('huge.bin', '')
    truncateSync(join(w.dir, 'huge.bin'), 60_000_000)
    w.git('init', '-q', 'inner')
    const { warnings } = await w.checkpoints().preflight('start')
    expect(warnings).toHaveLength(3)
    expect(warnings.join('\n')).toMatch(/huge\.bin \(60 MB\)[^]*id_rsa[^]*inner\//)
    expect(warnings.join('\n')).toContain('conf/.env.local')
    expect(warnings.join('\n')).not.toContain('.env.example')
  })
})

describe('a hostile surrounding has no say', () => {
  it.each([
    ['branch', '.'],
    ['stash', '.'],
    ['branch', 'sub'],
  ] as const)(
    'G14, G15: a split index (%s, in %s) whose second file git removes while an agent works comes back as it was',
    async (strategy, place) => {
      const w = world()
      if (place === 'sub') {
        w.user('init', '-q', 'sub')
        w.user('-C', 'sub', 'commit', '-q', '--allow-empty', '-m', 'first')
        w.user('-c', 'advice.addEmbeddedRepo=false', 'add', 'sub')
        w.user('commit', '-q', '-m', 'a submodule')
      }
      const git = (...args: string[]): string => w.user('-C', place, ...args)
      for (let n = 0; n < 9; n += 1) w.write(`${place}/d/${n}.txt`, `${n}\n`)
      git('add', '-A')
      git('commit', '-q', '-m', 'many')
      git('config', 'core.splitIndex', 'true')
      git('config', 'splitIndex.sharedIndexExpire', 'now')
      git('config', 'splitIndex.maxPercentChange', '0')
      git('update-index', '--split-index')
      w.write(`${place}/d/1.txt`, 'edited\n')
      const was = git('diff', '--cached') + git('diff')
      const checkpoints = w.checkpoints(strategy)
      await checkpoints.preflight('start')
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      await w.note({ type: 'iteration.started', n: 1 } as never)
      for (const n of [5, 6, 7]) {
        w.write(`${place}/d/${n}.txt`, 'by the agent\n')
        git('add', '-A')
      }
      git('update-index', '--split-index')
      await checkpoints.keep(1)
      await checkpoints.restore()
      await checkpoints.ensure('1')
      await checkpoints.finish('cleanup')
      expect(git('diff', '--cached') + git('diff')).toBe(was)
    },
  )

  it('G9, G10, G14: no identity, signing, failing hooks, odd configuration and GIT_* in the environment', async () => {
    const w = world()
    writeFileSync(join(w.root, 'home/.gitconfig'), '')
    for (const hook of [
      'pre-commit',
      'commit-msg',
      'prepare-commit-msg',
      'post-checkout',
      'reference-transaction',
      'post-index-change',
    ]) {
      w.write(`.git/hooks/${hook}`, `#!/bin/sh\ntouch ${w.root}/hooked\nexit 1\n`, 0o755)
    }
    appendFileSync(
      join(w.dir, '.git/config'),
      '[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = /bin/false\n[merge]\n\tff = only\n[alias]\n\tstatus = log\n[core]\n\tpager = false\n\tsafecrlf = true\n\tautocrlf = input\n[status]\n\tshowUntrackedFiles = no\n\trelativePaths = true\n[diff]\n\tnoprefix = true\n\trenames = copies\n[color]\n\tui = always\n[user]\n\tuseConfigOnly = true\n',
    )
    const env = {
      ...w.env,
      GIT_DIR: '/nowhere',
      GIT_INDEX_FILE: '/nowhere/index',
      GIT_WORK_TREE: '/',
      LANG: 'de_DE.UTF-8',
      GIT_AUTHOR_DATE: 'x',
    }
    const git = gitIn(w.gitPort, { timeoutMs: 30_000, env })
    const checkpoints = w.checkpoints('branch', { git })
    await checkpoints.preflight('start')
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('junk', 'x')
    await checkpoints.keep(1)
    await checkpoints.restore()
    await checkpoints.ensure('1')
    w.write('work.txt', 'w')
    await checkpoints.keep(2)
    await checkpoints.save('1', 'checkpoint: 1')
    await checkpoints.finish('cleanup')
    expect(w.git('-c', 'color.ui=never', 'ls-files', '-o')).toBe('work.txt\n')
    expect(existsSync(join(w.root, 'hooked'))).toBe(false)
    expect(w.git('log', '-1', '--format=%an', 'refs/ralph/demo/attempts/2').trim()).toBe('ralph')
  })

  it('G24: a git command that hangs is killed with its children, and said so', async () => {
    const w = world()
    mkdirSync(join(w.root, 'bin'))
    writeFileSync(join(w.root, 'bin/git'), '#!/bin/sh\nsleep 600 & echo $! > "$HOME/child"; wait\n')
    chmodSync(join(w.root, 'bin/git'), 0o755)
    const env = { ...w.env, PATH: `${join(w.root, 'bin')}:${w.env['PATH']}` }
    // On a busy machine the first limits may be over before it has a child.
    for (let timeoutMs = 250; !existsSync(join(w.root, 'home/child')); timeoutMs *= 2) {
      const git = gitIn(w.gitPort, { timeoutMs, env })
      await expect(git.run(['status'])).rejects.toMatchObject({ code: 'git_failed', exitCode: 1 })
    }
    const child = readFileSync(join(w.root, 'home/child'), 'utf8').trim()
    const state = spawnSync('ps', ['-o', 'stat=', '-p', child], { encoding: 'utf8' }).stdout.trim()
    expect(state === '' || state.startsWith('Z')).toBe(true)
  })

  it('G11: a lock that goes away is waited for; one that stays stops the loop with the tree as it is', async () => {
    const w = world()
    const lock = join(w.dir, '.git/index.lock')
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('work.txt', 'w')
    await checkpoints.keep(1)
    writeFileSync(lock, '')
    const branch = join(w.dir, '.git/refs/heads/ralph/demo')
    const before = readFileSync(branch, 'utf8')
    const saving = checkpoints.save('1', 'checkpoint: 1')
    let isOver = false
    saving.finally(() => (isOver = true)).catch(() => undefined)
    // Once the branch has moved, the index is the next that it writes: whoever took the lock away earlier would prove nothing.
    while (!isOver && readFileSync(branch, 'utf8') === before) await new Promise(setImmediate)
    expect(isOver).toBe(false)
    setTimeout(() => rmSync(lock), 300)
    await expect(saving).resolves.toMatchObject({ changed: true })
    await checkpoints.ensure('2')
    w.write('more.txt', 'm')
    writeFileSync(lock, '')
    await expect(checkpoints.save('2', 'checkpoint: 2')).rejects.toMatchObject({
      code: 'checkpoint_failed',
      exitCode: 1,
    })
    expect([w.read('work.txt'), w.read('more.txt')]).toEqual(['w', 'm'])
    rmSync(lock)
    await w.checkpoints().recover()
    expect(w.git('show', 'ralph/demo:more.txt')).toBe('m')
    expect(w.git('status', '--porcelain')).toBe('')
  })

  it('G11: a checkpoint that is there already gets its time from the clock of the disk, as a lock does', async () => {
    const w = world()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    const snapshot = join(w.dir, '.git/ralph/checkpoints/demo/snapshot.json')
    const file = join(w.dir, '.git/later')
    for (let round = 0; round < 20; round += 1) {
      await checkpoints.ensure('1')
      writeFileSync(file, '')
      expect(statSync(file).mtimeMs).toBeGreaterThanOrEqual(statSync(snapshot).mtimeMs)
    }
  })

  it('G11: a lock that the agent left when it was killed does not stop the loop; one of a living git does', async () => {
    const w = world()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const lock = join(w.dir, '.git/index.lock')
    writeFileSync(lock, '')
    expect((await checkpoints.keep(1)).warnings.join()).toContain('index.lock')
    await checkpoints.restore()
    await checkpoints.ensure('1')
    // A git that waits for its input, as one with an open editor would.
    const living = spawn('git', ['cat-file', '--batch'], {
      cwd: w.dir,
      env: w.env,
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    living.stdin.write('HEAD\n')
    await once(living.stdout, 'data')
    writeFileSync(lock, '')
    expect((await checkpoints.keep(2)).warnings).toEqual([])
    expect(existsSync(lock)).toBe(true)
    living.stdin.end()
    await once(living, 'exit')
  })

  it('G19: a submodule that the agent filled is empty again after the revert', async () => {
    const w = world()
    w.git('init', '-q', '../lib')
    w.git('-C', '../lib', 'commit', '-q', '--allow-empty', '-m', 'x')
    w.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', '../lib', 'sub')
    w.git('commit', '-qm', 'a submodule')
    w.git('submodule', '--quiet', 'deinit', '-f', 'sub')
    const checkpoints = w.checkpoints()
    await checkpoints.preflight('start')
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const before = picture(w)
    w.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'update', '--init')
    w.write('sub/junk', 'x')
    expect(existsSync(join(w.dir, 'sub/.git'))).toBe(true)
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect(picture(w)).toEqual(before)
  })

  it('G19: a repository that a complete story leaves behind is no obstacle to the next', async () => {
    const w = world()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.git('init', '-q', 'bare-bones')
    w.git('init', '-q', 'filled')
    w.write('filled/x', 'x')
    await checkpoints.keep(1)
    const { commit } = await checkpoints.save('1', 'checkpoint: 1')
    expect(w.git('ls-tree', '-r', '--name-only', commit)).toContain('filled/x')
    expect(await checkpoints.ensure('2')).toEqual({ commit })
    w.write('junk', 'x')
    await checkpoints.keep(2)
    await checkpoints.restore()
    expect(existsSync(join(w.dir, 'bare-bones/.git'))).toBe(true)
    expect(w.read('filled/x')).toBe('x')
  })

  it('G27: names that are no UTF-8 are kept and restored', async () => {
    const w = world()
    const name = Buffer.from([...Buffer.from(`${w.dir}/caf`), 0xe9])
    writeFileSync(name, 'latin1')
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    rmSync(name)
    writeFileSync(Buffer.from([...Buffer.from(`${w.dir}/junk`), 0xff]), 'x')
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect(readFileSync(name, 'utf8')).toBe('latin1')
    expect(w.git('status', '--porcelain')).toBe('')
  })
})

describe('attempts', () => {
  async function twoAttempts(): Promise<World> {
    const w = world()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    for (const n of [1, 2]) {
      await checkpoints.ensure('1')
      w.write(`try-${n}.txt`, `try ${n}\n`)
      w.write('a.txt', `one\n${n}\n`)
      if (n === 2) w.git('commit', '-qam', 'half of it')
      await checkpoints.keep(n)
      await checkpoints.restore()
    }
    return w
  }

  it('G12: every attempt can be listed, seen as a patch against its checkpoint, and brought back', async () => {
    const w = await twoAttempts()
    const attempts = await listAttempts(w.gitPort, 'demo')
    expect(attempts.map(({ n, ref }) => [n, ref])).toEqual([
      [1, 'refs/ralph/demo/attempts/1'],
      [2, 'refs/ralph/demo/attempts/2'],
    ])
    const patch = (await diffAttempt(w.gitPort, 'demo', 2)).toString('utf8')
    expect(patch).toMatch(/\+2\n[^]*\+try 2/)
    expect(patch).not.toContain('try 1')
    chmodSync(join(w.dir, 'a.txt'), 0o600)
    await bringBack(w.gitPort, 'demo', 2, { protectedPaths: [] })
    expect(w.git('status', '--porcelain')).toBe(' M a.txt\n?? try-2.txt\n')
    expect(statSync(join(w.dir, 'a.txt')).mode & 0o777).toBe(0o600)
    const to = join(w.root, 'out')
    await writeAttempt(w.gitPort, 'demo', 1, to)
    expect(readFileSync(join(to, 'try-1.txt'), 'utf8')).toBe('try 1\n')
    await expect(writeAttempt(w.gitPort, 'demo', 1, to)).rejects.toMatchObject({
      code: 'usage',
      ...refused,
    })
  })

  it('bringing one back never overwrites, and an unknown number names the known ones', async () => {
    const w = await twoAttempts()
    w.write('try-1.txt', 'mine')
    await expect(bringBack(w.gitPort, 'demo', 1, { protectedPaths: [] })).rejects.toMatchObject({
      code: 'finish_conflict',
      hint: expect.stringContaining('ralph restore 1 demo --to ') as string,
    })
    expect(w.read('try-1.txt')).toBe('mine')
    await expect(diffAttempt(w.gitPort, 'demo', 9)).rejects.toMatchObject({
      code: 'attempt_not_found',
      hint: 'These are kept: 1, 2.',
    })
  })

  it('they go only on request, and make room for a new run', async () => {
    const w = await twoAttempts()
    await archiveAttempts(w.gitPort, 'demo', '2026-01-01T000000')
    expect(await listAttempts(w.gitPort, 'demo')).toEqual([])
    expect(await cleanAttempts(w.gitPort, 'demo')).toEqual({ count: 2, kept: [] })
    expect(w.git('for-each-ref', 'refs/ralph/demo/earlier', 'refs/ralph/demo/attempts')).toBe('')
  })
})

describe('the stash strategy', () => {
  it('S002-D2: entries are named ralph:<change>:<story>, can be applied by plain git, and only its own are dropped', async () => {
    const w = world()
    for (const name of ['ralph:demo:1x', 'ralph:demolition:1', 'mine']) {
      w.write('a.txt', `${name}\n`)
      w.git('stash', 'push', '-q', '-m', name)
    }
    const own = w.git('stash', 'list', '--format=%H %s')
    w.write('a.txt', 'staged\n')
    w.git('add', 'a.txt')
    w.write('untracked.txt', 'u')
    const checkpoints = w.checkpoints('stash')
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    expect(w.git('stash', 'list', '--format=%gs').split('\n')[0]).toBe('ralph:demo:1')
    expect(w.git('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/main')
    w.git('clone', '-q', '.', '../clone')
    w.git('-C', '../clone', 'fetch', '-q', 'origin', '+refs/stash:refs/stash')
    w.git('-C', '../clone', 'stash', 'apply', '-q', '--index', 'refs/stash')
    expect(w.git('-C', '../clone', 'status', '--porcelain')).toBe('M  a.txt\n?? untracked.txt\n')
    w.write('work.txt', 'w')
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    expect(w.git('stash', 'list', '--format=%H %s')).toBe(own)
    await checkpoints.ensure('2')
    await checkpoints.finish('cleanup')
    expect(w.git('stash', 'list', '--format=%H %s')).toBe(own)
  })

  it('L: a stash list that somebody else has locked (`git reflog expire --all`) is waited for, then named', async () => {
    const w = world()
    const checkpoints = w.checkpoints('stash')
    await checkpoints.start('start')
    const lock = join(w.dir, '.git/refs/stash.lock')
    writeFileSync(lock, '')
    await expect(checkpoints.ensure('1')).rejects.toThrow(lock)
    rmSync(lock)
    await checkpoints.recover()
    await checkpoints.ensure('1')
    expect(w.git('stash', 'list', '--format=%gs')).toBe('ralph:demo:1\n')
  }, 30_000)

  it('S002-D3: with the retries used up the entry stays for inspection', async () => {
    const w = world()
    const checkpoints = w.checkpoints('stash')
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('junk', 'x')
    await checkpoints.keep(1)
    await checkpoints.restore()
    await w.note({ type: 'max_retries_exceeded', story_id: '1', attempts: 1 })
    await checkpoints.finish('keep')
    expect(w.git('stash', 'list', '--format=%gs')).toBe('ralph:demo:1\n')
    expect(w.git('log', '--format=%s')).toBe('first\n')
  })
})
