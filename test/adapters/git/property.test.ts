// Random repositories, random agents: whatever they do, the revert is exact and nothing of the user's is lost.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, lstatSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { copyWorld, endTemplates, filesOf, picture, type Picture, type World } from './world.ts'

/** RALPH_PROPERTY_RUNS=300 for a longer run by hand, after a change of the checkpoints. */
const numRuns = Number(process.env['RALPH_PROPERTY_RUNS'] ?? 60)
const seed = Number(process.env['RALPH_PROPERTY_SEED'] ?? Date.now() % 2 ** 31)

afterAll(endTemplates)

const path = fc.constantFrom(
  'a.txt',
  'run.sh',
  'src/b.txt',
  'src/new.txt',
  'src',
  'new',
  'new/deep/x',
  'é ü.txt',
  '-dash',
  'sp ace/f',
  'line\nbreak',
  'x.log',
  'A.TXT',
  '.gitignore',
  'build/out',
  '.env',
)
const content = fc.constantFrom('', 'one\n', 'other\n', 'a\0b', '*.txt\n', 'long '.repeat(200), '\r\n')
const branch = fc.constantFrom('main', 'other', 'topic', 'ralph/demo', 'other/deep')

/** A step fails where git or the file system refuses it, as an agent's would; that is no failure of the test. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), path, content }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('remove' as const, 'chmod' as const, 'link' as const, 'folder' as const),
      path,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('move' as const), path, to: path }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('git' as const),
      args: fc.oneof(
        fc.constantFrom(
          ['add', '-A'],
          ['commit', '-qam', 'c'],
          ['commit', '-q', '--amend', '-am', 'amended'],
          ['stash', 'push', '-q', '-u'],
          ['stash', 'pop', '-q'],
          ['stash', 'drop', '-q'],
          ['checkout', '-q', '--detach'],
          ['reset', '-q', '--hard', 'HEAD~1'],
          ['reset', '-q'],
          ['clean', '-fdq'],
          ['bisect', 'start'],
          ['init', '-q', 'nested'],
          ['init', '-q', 'src'],
          ['tag', '-f', 'v1', 'HEAD'],
          ['tag', '-d', 'v1'],
          ['rm', '-rqf', '--cached', '.'],
          ['config', 'status.showUntrackedFiles', 'no'],
        ),
        fc.tuple(fc.constantFrom('add', 'rm'), path).map(([verb, name]) => [verb, '--', name]),
        path.map((name) => ['add', '-N', '-f', '--', name]),
        fc.tuple(fc.constantFrom('-D', '-f', '-m'), branch).map(([flag, name]) => ['branch', flag, name]),
        fc
          .tuple(
            fc.constantFrom(
              ['checkout', '-q'],
              ['checkout', '-qf'],
              ['checkout', '-q', '-b'],
              ['merge', '-q'],
              ['rebase', '-q'],
            ),
            branch,
          )
          .map(([verb, name]) => [...verb, name]),
      ),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Users keep out of what preflight refuses; the rest is the same as an agent's. */
const userSteps = fc.array(step, { maxLength: 6 })

/** What the user types beside the agent, to refs that only the user changes. */
const beside = fc.record({
  do: fc.constant('beside' as const),
  args: fc.constantFrom(
    ['branch', '-f', 'mine', 'HEAD'],
    ['branch', '-D', 'mine'],
    ['branch', 'mine-too', 'main'],
    ['tag', '-f', 'mine', 'HEAD~1'],
    ['tag', '-d', 'mine'],
    ['pack-refs', '--all'],
  ),
})
const agentSteps = fc.array(fc.oneof({ weight: 4, arbitrary: step }, { weight: 1, arbitrary: beside }), {
  minLength: 1,
  maxLength: 8,
})

it(`G1-G4, G15, G16, G19, G21, G27, O12, O13: a failed attempt leaves no trace, and what the user did beside it stays (seed ${seed}, ${numRuns} runs)`, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('branch' as const, 'stash' as const),
      userSteps,
      agentSteps,
      async (strategy, user, agent) => {
        const w = copyWorld(base)
        try {
          for (const one of user) perform(w, one)
          const checkpoints = w.checkpoints(strategy)
          const outcome = await checkpoints.preflight('start').then(
            () => '',
            (error: { exitCode: number }) => `refused ${error.exitCode}`,
          )
          if (outcome !== '') {
            expect(outcome).toBe('refused 2')
            return
          }
          const own = picture(w)
          await checkpoints.start('start')
          await checkpoints.ensure('1')
          const before = picture(w)
          expect(before.files).toEqual(own.files)
          for (const one of agent) perform(w, one)
          const mine = refLines(picture(w)).filter(isMine)
          const withMine = (one: Picture): Picture => {
            const others = refLines(one).filter((line) => !isMine(line))
            return {
              ...one,
              refs: [...others, ...mine]
                .sort(byName)
                .map((line) => `${line}\n`)
                .join(''),
            }
          }
          const kept = await checkpoints.keep(1)
          await checkpoints.restore()
          const after = picture(w)
          same(w, after, withMine(before), own)
          expect(w.git('cat-file', '-t', kept.ref).trim()).toBe('commit')
          await checkpoints.ensure('1')
          await checkpoints.finish('cleanup')
          const end = picture(w)
          same(w, end, withMine(own), own)
        } finally {
          w.end()
        }
      },
    ),
    { numRuns, seed, endOnFailure: process.env['RALPH_PROPERTY_SHRINK'] !== '1' },
  )
}, 1_800_000)

function refLines({ refs }: Picture): string[] {
  return refs.split('\n').filter((line) => line !== '')
}

function isMine(line: string): boolean {
  return /\/mine(-too)?$/.test(line)
}

/** As git lists them. */
function byName(one: string, other: string): number {
  const [a = '', b = ''] = [one, other].map((line) => line.split(' ')[1] ?? '')
  return a < b ? -1 : 1
}

function base(w: World): void {
  w.git('branch', 'other')
  w.git('branch', 'mine')
  w.git('tag', 'mine')
  w.git('tag', 'v1')
  w.write('a.txt', 'stashed\n')
  w.git('stash', 'push', '-q', '-m', 'the user')
  w.write('a.txt', 'second\n')
  w.git('commit', '-qam', 'second')
  w.write('.env', 'SECRET\n')
  w.write('build/out', 'b\n')
  w.write('note.txt', 'untracked\n')
  mkdirSync(join(w.dir, 'empty/inner'), { recursive: true })
}

/** Ignored files and repositories inside the user's are the agent's to spoil: no checkpoint holds them. */
function same(w: World, seen: Picture, expected: Picture, own: Picture): void {
  const names = [...new Set([...Object.keys(seen.files), ...Object.keys(expected.files)])]
  const asked = spawnSync('git', ['check-ignore', '-z', '--stdin'], {
    cwd: w.dir,
    env: w.env,
    input: names.join('\0'),
  })
  const ignored = new Set(asked.stdout.toString('utf8').split('\0'))
  const inner = Object.keys(own.files).flatMap((name) => /^(.+)\/\.git\/HEAD$/.exec(name)?.[1] ?? [])
  // What git tracks in such a folder is the outer repository's, and only the rest is the inner one's; it is all the inner one's where
  // git names the folder alone. The start says so.
  const whole = new Set(own.status.split('\0').map((line) => line.slice(3)))
  const isInner = (name: string): boolean =>
    inner.some((folder) => name.startsWith(whole.has(`${folder}/`) ? `${folder}/` : `${folder}/.git/`))
  const relevant = (one: Picture): Picture => ({
    ...one,
    files: Object.fromEntries(
      Object.entries(one.files).filter(([name]) => !ignored.has(name) && !isInner(name)),
    ),
  })
  expect(relevant(seen)).toEqual(relevant(expected))
}

function perform(w: World, one: Step | { readonly do: 'beside'; readonly args: readonly string[] }): void {
  try {
    const full = join(w.dir, 'path' in one ? one.path : '')
    if (one.do === 'write') w.write(one.path, one.content)
    else if (one.do === 'git') w.git(...one.args)
    else if (one.do === 'beside') w.user(...one.args)
    else if (one.do === 'remove') rmSync(full, { recursive: true })
    else if (one.do === 'chmod') chmodSync(full, lstatSync(full).mode ^ 0o111)
    else if (one.do === 'folder') mkdirSync(full, { recursive: true })
    else if (one.do === 'move') renameSync(full, join(w.dir, one.to))
    else if (!existsSync(full)) {
      mkdirSync(dirname(full), { recursive: true })
      symlinkSync('../a.txt', full)
    }
  } catch (error) {
    expect(error).toBeInstanceOf(Error)
  }
}

it('the picture that the property compares does see a changed byte, a mode, an empty folder and a ref', () => {
  const w = copyWorld(base)
  try {
    const files = filesOf(w.dir)
    const before = picture(w)
    w.write('note.txt', 'untracked!\n')
    chmodSync(join(w.dir, 'a.txt'), 0o755)
    rmSync(join(w.dir, 'empty/inner'), { recursive: true })
    w.git('branch', 'new')
    const changed = Object.entries(filesOf(w.dir)).filter(([name, value]) => files[name] !== value)
    expect(changed.map(([name]) => name).sort()).toEqual(['a.txt', 'empty/', 'note.txt'])
    expect(picture(w).refs).not.toBe(before.refs)
    w.git('stash', 'drop', '-q')
    expect([before.stashes, picture(w).stashes]).toEqual([expect.stringContaining('the user'), ''])
  } finally {
    w.end()
  }
})
