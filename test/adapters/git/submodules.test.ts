// O19, G19: submodules that are checked out, with the user's work inside, are kept and restored like the rest of the tree.
import { existsSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { addSubmodules, all, branched, filesIn, nested, odd, plain, wholePicture } from './submodule-world.ts'
import { run } from '../../shell.ts'
import { makeWorld, type Strategy, type World } from './world.ts'

let template: World
const worlds: World[] = []
beforeAll(() => {
  template = makeWorld()
  addSubmodules(template)
})
afterEach(() => {
  for (const made of worlds.splice(0)) made.end()
})
afterAll(() => {
  for (const made of [template, ...begun.values()]) made.end()
})

function copyOf(other: World): World {
  const made = makeWorld({ copyOf: other.dir })
  run('cp', ['-a', join(dirname(other.dir), 'libs'), dirname(made.dir)], { cwd: made.dir, env: made.env })
  made.journal.push(...other.journal)
  return made
}

function world(): World {
  const made = copyOf(template)
  worlds.push(made)
  return made
}

const begun = new Map<Strategy, World>()

/** One in which the checkpoints have started: that takes a sixth of what most tests do. */
async function begunWorld(strategy: Strategy = 'branch'): Promise<World> {
  let first = begun.get(strategy)
  if (first === undefined) {
    begun.set(strategy, (first = copyOf(template)))
    await first.checkpoints(strategy).start('start')
  }
  const made = copyOf(first)
  worlds.push(made)
  return made
}

/** Of what it leaves in the place of the inner one ralph knows no more than of any repository inside. */
const leavesInner = {
  'goes back to a commit that knows nothing of the inner one': (w: World): void =>
    void w.git('-C', branched, 'checkout', '-q', '-f', 'HEAD~1'),
}

const strategies: readonly Strategy[] = ['branch', 'stash']

/** What an agent may do in and to submodules. */
const deeds: Record<string, (w: World) => void> = {
  'edits, adds and deletes files': (w) => {
    for (const path of all) {
      w.write(`${path}/two.txt`, 'agent\n')
      w.write(`${path}/agent/deep.txt`, 'agent\n')
      rmSync(join(w.dir, path, 'three.txt'))
      rmSync(join(w.dir, path, 'mine'), { recursive: true })
      rmSync(join(w.dir, path, 'empty'), { recursive: true })
    }
  },
  'commits, in the submodules and then around them': (w) => {
    for (const path of [nested, odd, plain, branched]) {
      w.write(`${path}/agent.txt`, 'agent\n')
      w.git('-C', path, 'add', '-A')
      w.git('-C', path, 'commit', '-qm', 'agent')
    }
    w.git('commit', '-qam', 'agent: all of it')
  },
  'switches branches, deletes, moves and makes some': (w) => {
    w.git('-C', branched, 'checkout', '-q', '-f', '-b', 'agents')
    w.git('-C', branched, 'commit', '-q', '--allow-empty', '-m', 'agent')
    w.git('-C', branched, 'branch', '-D', 'feature')
    w.git('-C', branched, 'branch', '-f', 'spare', 'HEAD')
    w.git('-C', plain, 'tag', 'agents-tag')
    w.git('-C', odd, 'checkout', '-q', '-f', '-B', 'main')
  },
  'makes other names of branches, and branches of other names': (w) => {
    w.git('-C', branched, 'symbolic-ref', 'refs/heads/main', 'refs/heads/spare')
    w.git('-C', branched, 'symbolic-ref', 'refs/heads/new', 'refs/heads/spare')
    w.git('-C', branched, 'symbolic-ref', '-d', 'refs/heads/also')
    w.git('-C', branched, 'branch', 'also')
    w.git('-C', branched, 'symbolic-ref', '-d', 'refs/heads/too')
  },
  'resets, cleans and drops stashes': (w) => {
    for (const path of all) {
      w.git('-C', path, 'reset', '-q', '--hard')
      w.git('-C', path, 'clean', '-fdq')
      w.git('-C', path, 'stash', 'clear')
      w.git('-C', path, 'reflog', 'expire', '--expire=now', '--all')
      w.git('-C', path, 'gc', '-q', '--prune=now')
    }
  },
  'stashes what is there': (w) => {
    for (const path of [branched, plain]) w.git('-C', path, 'stash', 'push', '-q', '-u', '-m', 'of the agent')
  },
  'updates by force': (w) => {
    w.git('-C', branched, 'commit', '-q', '--allow-empty', '-m', 'agent')
    w.git(
      '-c',
      'protocol.file.allow=always',
      'submodule',
      '--quiet',
      'update',
      '--init',
      '--recursive',
      '--force',
      branched,
    )
  },
  deinits: (w) => w.git('submodule', '--quiet', 'deinit', '-f', branched),
  'deletes their folders': (w) => {
    for (const path of ['libs', branched, plain]) rmSync(join(w.dir, path), { recursive: true })
  },
  'puts a file and a link in their place': (w) => {
    for (const path of ['libs', branched, plain]) rmSync(join(w.dir, path), { recursive: true })
    symlinkSync(join(w.root, 'home'), join(w.dir, 'libs'))
    symlinkSync(join(w.root, 'home'), join(w.dir, plain))
    w.write(branched, 'a file')
  },
  'deletes their git directories': (w) => {
    rmSync(join(w.dir, '.git/modules'), { recursive: true })
    rmSync(join(w.dir, plain, '.git'), { recursive: true })
  },
  'deletes folders and git directories': (w) => {
    rmSync(join(w.dir, '.git/modules'), { recursive: true })
    for (const path of ['libs', branched, plain]) rmSync(join(w.dir, path), { recursive: true })
  },
  'adds one': (w) => {
    w.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', '../libs/inner', 'added')
    w.write('added/agent.txt', 'agent\n')
  },
  'moves one': (w) => w.git('mv', branched, 'elsewhere'),
  'removes one': (w) => w.git('rm', '-qf', branched),
  'rewrites .gitmodules': (w) => w.write('.gitmodules', '[submodule "sub"]\n\tpath = nowhere\n'),
  'absorbs a git directory': (w) => w.git('submodule', '--quiet', 'absorbgitdirs'),
  'points a .git file elsewhere': (w) => w.write(`${branched}/.git`, `gitdir: ${join(w.dir, '.git')}\n`),
  'breaks HEAD and the settings': (w) => {
    w.write('.git/modules/sub/HEAD', 'nonsense')
    w.git('-C', odd, 'config', 'core.worktree', '/nowhere')
  },
  'leaves a merge half done': (w) => {
    w.git('-C', plain, 'reset', '-q', '--hard')
    w.git('-C', plain, 'checkout', '-q', '-b', 'side')
    w.write(`${plain}/one.txt`, 'side\n')
    w.git('-C', plain, 'commit', '-qam', 'side')
    w.git('-C', plain, 'checkout', '-q', 'main')
    w.write(`${plain}/one.txt`, 'main\n')
    w.git('-C', plain, 'commit', '-qam', 'main')
    expect(() => w.git('-C', plain, 'merge', 'side')).toThrow('merge')
  },
}

describe.each(strategies)('O19, G19: submodules, checkpoints by %s', (strategy) => {
  it('whatever an agent does in or to them before it fails: all is as it was, again and again, and at cleanup', async () => {
    const w = world()
    const checkpoints = w.checkpoints(strategy)
    const atStart = wholePicture(w)
    await checkpoints.preflight('start')
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const before = wholePicture(w)
    expect(before.inside).toEqual(atStart.inside)
    let n = 0
    for (const [name, deed] of Object.entries({ ...deeds, ...leavesInner })) {
      n += 1
      await w.note(started(n))
      deed(w)
      // As everywhere: what is ignored is never touched, and an agent that deletes it has deleted it.
      const gone = all.filter((path) => !existsSync(join(w.dir, path, 'build.log')))
      await checkpoints.keep(n)
      await checkpoints.restore()
      for (const path of gone) w.write(`${path}/build.log`, 'ignored\n')
      expect(wholePicture(w), name).toEqual(before)
      await checkpoints.ensure('1')
    }
    await checkpoints.finish('cleanup')
    expect(wholePicture(w)).toEqual(atStart)
    expect(existsSync(join(w.dir, '.git/ralph/checkpoints/demo/submodules'))).toBe(false)
    // Twenty attempts in one world.
  }, 300_000)
})

describe('O19: submodules, an agent that completes', () => {
  const stashed = [
    'edits, adds and deletes files',
    'commits, in the submodules and then around them',
    'adds one',
  ]
  const cases = strategies.flatMap((strategy) =>
    Object.entries(deeds)
      .filter(([name]) => strategy === 'branch' || stashed.includes(name))
      .map(([name, deed]) => ({ strategy, name, deed })),
  )
  it.each(cases)(
    '$strategy: one that $name: its work stays, and is what the next attempt begins with',
    async ({ strategy, deed }) => {
      const w = await begunWorld(strategy)
      const checkpoints = w.checkpoints(strategy)
      await checkpoints.ensure('1')
      await w.note(started(1))
      deed(w)
      const files = filesIn(w)
      await checkpoints.keep(1)
      await checkpoints.save('1', 'checkpoint: 1')
      expect(filesIn(w)).toEqual(files)
      await checkpoints.ensure('2')
      const before = wholePicture(w)
      await w.note(started(2))
      for (const path of all.filter((each) => existsSync(join(w.dir, each, 'two.txt'))))
        w.write(`${path}/two.txt`, 'second\n')
      await checkpoints.keep(2)
      await checkpoints.restore()
      expect(wholePicture(w)).toEqual(before)
      await checkpoints.finish('cleanup')
      expect(filesIn(w)).toEqual(files)
    },
  )
})

describe.each(strategies)(
  'O15, O19: a required filter that fails in a submodule, checkpoints by %s',
  (strategy) => {
    it.each([
      ['its way in', 'false', 'cat', /clean filter 'broken' failed/],
      ['its way out', 'cat', 'false', /smudge filter broken failed/],
    ])(
      'an attempt that turns it on for files there, on %s, is kept and undone; complete, it is refused',
      async (_, clean, smudge, why) => {
        const w = world()
        w.git('config', '--global', 'filter.broken.clean', clean)
        w.git('config', '--global', 'filter.broken.smudge', smudge)
        w.git('config', '--global', 'filter.broken.required', 'true')
        const checkpoints = w.checkpoints(strategy, { env: w.env })
        await checkpoints.start('start')
        const before = wholePicture(w)
        for (const n of [1, 2]) {
          await checkpoints.ensure('1')
          await w.note(started(n))
          for (const path of [plain, nested]) {
            w.write(`${path}/.gitattributes`, '*.txt filter=broken\n')
            w.write(`${path}/two.txt`, 'work\n')
          }
          const { refused } = await checkpoints.keep(n, n === 2)
          expect(refused ?? '').toMatch(n === 2 ? why : /^$/)
          for (const path of [plain, nested])
            expect(w.git('-C', path, 'show', `refs/ralph/demo/superproject/attempts/${n}:two.txt`)).toBe(
              'work\n',
            )
          await checkpoints.restore()
          expect(wholePicture(w).inside).toEqual(before.inside)
        }
      },
    )
  },
)

it('O2, O19: an agent that sweeps a submodule or removes one and completes: what was uncommitted is named, and the command brings it back', async () => {
  const w = await begunWorld()
  const checkpoints = w.checkpoints()
  await checkpoints.ensure('1')
  await w.note(started(1))
  w.git('-C', plain, 'checkout', '-q', '-f')
  w.git('-C', plain, 'clean', '-fdq')
  w.write(`${odd}/two.txt`, `${w.read(`${odd}/two.txt`)}worked on\n`)
  w.git('submodule', '--quiet', 'deinit', '-f', branched)
  await checkpoints.keep(1)
  await checkpoints.save('1', 'checkpoint: 1')
  const told = w.journal.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
  const about = (path: string): string =>
    told.find((line) => line.includes(`submodule ${path} is gone`)) ?? ''
  expect(told.filter((line) => line.includes(' is gone: '))).toHaveLength(3)
  for (const name of ['one.txt', 'two.txt', 'mine/new file.txt', 'secret'])
    expect(about(plain)).toContain(name)
  expect(about(nested)).toContain('one.txt')
  const type = (command: string): string => run('sh', ['-c', command], { cwd: w.dir, env: w.env })
  type(about(plain).split('it is kept: ')[1] ?? '')
  expect(w.read(`${plain}/one.txt`)).toBe('staged, then edited\n')
  expect(w.read(`${plain}/mine/new file.txt`)).toBe('untracked\n')
  type((about(branched).split('it is kept: ')[1] ?? '').replace('DIR', '../look'))
  expect(w.read('../look/mine/new file.txt')).toBe('untracked\n')
})

it.each([
  ['deletes', undefined],
  ['writes anew', 'of the agent\n'],
])(
  'O2, O19: one that %s a file with uncommitted work in a submodule and completes: named, and the command brings it back',
  async (_, text) => {
    const w = await begunWorld()
    const checkpoints = w.checkpoints()
    await checkpoints.ensure('1')
    await w.note(started(1))
    const was = w.read(`${plain}/one.txt`)
    rmSync(join(w.dir, plain, 'one.txt'))
    if (text !== undefined) w.write(`${plain}/one.txt`, text)
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    const told = w.journal.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
    const line = told.find((text) => text.includes(`submodule ${plain} is gone: one.txt`)) ?? ''
    run('sh', ['-c', line.split('it is kept: ')[1] ?? 'false'], { cwd: w.dir, env: w.env })
    expect(w.read(`${plain}/one.txt`)).toBe(was)
  },
)

it.each([
  ['', false],
  [' after a cleanup', true],
])(
  'O2, O19: one that commits it in a submodule, and a later one%s that deletes it: named all the same',
  async (_, isCleaned) => {
    const w = await begunWorld()
    const checkpoints = w.checkpoints()
    const attempt = async (n: number, work: () => void): Promise<string[]> => {
      await checkpoints.ensure(`${n}`)
      await w.note(started(n))
      work()
      await checkpoints.keep(n)
      await checkpoints.save(`${n}`, `checkpoint: ${n}`)
      return w.journal.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
    }
    const was = w.read(`${plain}/one.txt`)
    const committed = await attempt(1, () => w.git('-C', plain, 'commit', '-qam', 'by the agent'))
    expect(committed.join('\n')).not.toContain(' is gone: ')
    if (isCleaned) {
      await checkpoints.finish('cleanup')
      await checkpoints.start('resume')
    }
    const told = await attempt(2, () => rmSync(join(w.dir, plain, 'one.txt')))
    const line = told.find((text) => text.includes(`submodule ${plain} is gone: one.txt`)) ?? ''
    run('sh', ['-c', line.split('it is kept: ')[1] ?? 'false'], { cwd: w.dir, env: w.env })
    expect(w.read(`${plain}/one.txt`)).toBe(was)
  },
)

function started(n: number) {
  return {
    type: 'iteration.started' as const,
    n,
    story_id: '1',
    attempt: n,
    attempts: 3,
    max_iterations: 9,
    agent: 'x',
    base_commit: '',
    log_file: '',
  }
}
