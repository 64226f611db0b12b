// After a kill -9: commands that look change nothing, commands that repair leave alone what the user has done since.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { fileLock } from '../../src/adapters/files/lock.ts'
import { bootId, isAlive, processIdentity } from '../../src/adapters/process/table.ts'
import {
  goodAgent,
  longDead,
  ralph,
  scratch,
  start,
  tasksOf,
  type Finished,
  type Scratch,
} from './harness.ts'
import { after, scene } from './scenes.ts'
import { onScreen } from './screen.ts'
import { run } from '../shell.ts'
import type { StateFile } from '../../src/core/state-file.ts'

const tasks = 'openspec/changes/demo/tasks.md'
/** Leaves half an attempt, and would do so for ever. */
const worker = (deed = 'echo half > half.txt'): string =>
  `cat >/dev/null; ${deed}; echo working; exec tail -f /dev/null`

interface Death {
  readonly flags?: readonly string[]
  readonly agent?: string
  readonly stories?: number
  /** Its agent goes on, else it is killed too. */
  readonly orphan?: boolean
}

/** A loop that was killed in its first attempt. */
async function killed(death: Death = {}): Promise<Scratch> {
  // An orphan is of one test.
  if (death.orphan === true) return dying(death)
  const at = await scene(`killed ${JSON.stringify(death)}`, () => dying(death))
  // A copy is of now, and so younger than that death.
  const now = new Date()
  utimesSync(join(at.repo, '.git/ralph/changes/demo/alive'), now, now)
  longDead(at)
  return at
}

async function dying({ flags = [], agent = worker(), stories = 1, orphan }: Death): Promise<Scratch> {
  const at = scratch({ tasks: tasksOf(stories) })
  at.write('src/old.txt', 'old\n')
  at.write('src/other.txt', 'other\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'more')
  at.write('early.txt', 'before the loop\n')
  const running = start(at, ['loop', 'demo', '--agent-command', agent, '--json', ...flags])
  await running.seen((stdout) => stdout.includes('"text":"working'))
  running.child.kill('SIGKILL')
  await running.ended
  if (orphan === true) longDead(at)
  else for (const pid of ofLoop(at)) process.kill(pid, 'SIGKILL')
  return at
}

/** By the run id that every process of a loop carries. */
function ofLoop(at: Scratch): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
        return environment.includes(`HOME=${at.root}`) && environment.includes('RALPH_RUN_ID=')
      } catch {
        return false
      }
    })
}

/** Every byte, mode and link of the work tree (without the state file), the index, HEAD and all refs. */
function picture(at: Scratch): string {
  const lines: string[] = []
  const visit = (folder: string): void => {
    for (const name of readdirSync(join(at.repo, folder)).sort()) {
      const path = folder === '' ? name : `${folder}/${name}`
      if (path === '.git' || path === '.claude') continue
      const stat = lstatSync(join(at.repo, path))
      if (stat.isDirectory()) visit(path)
      const content = stat.isFile()
        ? at.read(path)
        : stat.isSymbolicLink()
          ? readlinkSync(join(at.repo, path))
          : ''
      lines.push(`${path} ${stat.mode} ${stat.mtimeMs} ${content}`)
    }
  }
  visit('')
  const index = readFileSync(join(at.repo, '.git/index')).toString('base64')
  return [...lines, index, readFileSync(join(at.repo, '.git/HEAD'), 'utf8'), at.git('for-each-ref')].join(
    '\n',
  )
}

function edits(at: Scratch): void {
  at.write('README.md', '# mine now\n')
  at.write('mine.txt', 'typed after the crash\n')
}

/** What one command has printed, and what is there after it. */
interface Look {
  readonly command: string
  readonly stdout: string
  readonly picture: string
  readonly orphans: readonly number[]
  readonly state: StateFile
  /** Which files of its own ralph has written since the first look. */
  readonly wrote: readonly string[]
}

const looks = [
  ['list'],
  ['history', 'demo'],
  ['logs', 'demo'],
  ['attempts', 'demo'],
  ['why', 'demo'],
  ['show', 'demo'],
  ['prompt', 'demo'],
  ['config'],
  ['usage', '--since', '2020-01-01'],
  ['report', 'demo'],
  ['learnings', 'demo'],
  [],
  ['doctor'],
  ['status', 'demo'],
  ['status', 'demo', '--json'],
]

/** At a loop that was killed, whose agent goes on: what there was before, and each look with what it left. */
async function lookAround(): Promise<{ first: Omit<Look, 'command' | 'stdout'>; each: readonly Look[] }> {
  const at = await killed({ orphan: true })
  edits(at)
  longDead(at)
  const own = ['.git', '.claude', '-newer', join(at.root, 'probe'), '-type', 'f']
  const here = (): Omit<Look, 'command' | 'stdout'> => ({
    picture: picture(at),
    orphans: ofLoop(at),
    state: at.state(),
    wrote: run('find', own, { cwd: at.repo, env: at.env }).split('\n').filter(Boolean).sort(),
  })
  const first = here()
  const each: Look[] = []
  for (const args of looks) {
    const { stdout } = await ralph(at, args)
    each.push({ command: args.join(' '), stdout, ...here() })
  }
  return { first, each }
}

let around: Awaited<ReturnType<typeof lookAround>> | undefined

describe('commands that look', () => {
  test('O4: status, doctor, list, logs and all the others change not a byte and end no process', async () => {
    const { first, each } = (around ??= await lookAround())
    expect(first.orphans.length).toBeGreaterThan(0)
    expect(each.map(({ command }) => command)).toEqual(looks.map((args) => args.join(' ')))
    for (const look of each) {
      expect([look.command, look.picture]).toEqual([look.command, first.picture])
      expect([look.command, look.orphans]).toEqual([look.command, first.orphans])
    }
  })

  test('O4: only status and doctor write, and only the record of the death', async () => {
    const { each } = (around ??= await lookAround())
    const doctor = each.findIndex(({ command }) => command === 'doctor')
    expect(doctor).toBe(looks.length - 3)
    for (const { command, wrote, state } of each.slice(0, doctor))
      expect([command, wrote, state.status]).toEqual([command, [], 'running'])
    expect(each[doctor]).toMatchObject({
      wrote: ['.claude/loop-state.json', '.git/ralph/changes/demo/journal.ndjson'],
      state: { status: 'stopped', iterations: [{ n: 1, verdict: 'interrupted' }] },
    })
    expect(each.at(-1)?.state.iterations).toHaveLength(1)
  })

  test('E1: status says when it died, what still runs and what to type; --json has the pids', async () => {
    const { first, each } = (around ??= await lookAround())
    const said = (command: string): string => each.find((look) => look.command === command)?.stdout ?? ''
    const text = said('status demo')
    expect(text).toMatch(/died +\d+ s ago: ralph was killed/)
    expect(text).toMatch(/an agent still runs, pid \d+/)
    expect(text).toMatch(
      /next +ralph stop demo {3,}end its agent\n +then +ralph resume demo {3,}repair it and continue\n +or +ralph finish demo --cleanup {3,}repair it and end the run\n$/,
    )
    expect(JSON.parse(said('status demo --json'))).toMatchObject({
      status: 'stopped',
      alive: false,
      orphan_pids: expect.arrayContaining(first.orphans.slice(0, 1)),
    })
    expect(said('doctor')).toMatch(/! loop demo +died .* still runs, pid/)
  })

  test('E1: list says what status says: died, what still runs, what to type; it writes nothing; a finish names all that it undoes', async () => {
    // Nobody can tell that the second is not the agent's: it came while the loop lived.
    const at = await killed({
      orphan: true,
      agent: worker('echo half > half.txt; echo mine > mynote.txt'),
    })
    const before = at.state()
    const { stdout } = await ralph(at, ['list'])
    expect(stdout).toMatch(/^demo .* {2}✕ died {2}/m)
    expect(stdout).toMatch(
      /^demo: ralph was killed, and an agent still runs \(pid \d[\d, ]*\); type: ralph stop demo; then ralph resume demo$/m,
    )
    // Nor do the others: the attempt that was cut off is the one to look at.
    expect((await ralph(at, ['why', 'demo'])).stdout).toMatch(/look +ralph logs 1 demo +what the agent said/)
    const died = /^demo {3}✕ died\n.*\n {2}ralph was killed in the middle of the work/
    expect((await ralph(at, ['report', 'demo'])).stdout).toMatch(died)
    expect(at.state()).toEqual(before)
    expect((await ralph(at, ['status', 'demo'])).stdout).toMatch(/^demo {2}✕ died\n/)
    const [text, json] = [await ralph(at, ['report', 'demo']), await ralph(at, ['report', 'demo', '--json'])]
    expect(text.stdout).toMatch(died)
    expect(JSON.parse(json.stdout)).toMatchObject({ status: 'stopped', died_at: expect.any(String) })
    await ralph(at, ['stop', 'demo'])
    const after = (await ralph(at, ['list'])).stdout
    expect(after).toMatch(/^demo .* {2}✕ died {2}/m)
    expect(after).toContain('demo: ralph was killed; continue with: ralph resume demo')
    const { stderr } = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(stderr).toContain('Undone, 2 files: half.txt, mynote.txt; all of it back: ralph restore 1 demo\n')
    expect((await ralph(at, ['list'])).stdout).not.toContain('died')
    expect((await ralph(at, ['restore', '1', 'demo'])).code).toBe(0)
    expect(at.read('mynote.txt')).toBe('mine\n')
  })

  test('E1: it stays died in the status line and on the screen once that is recorded, which name what still runs and what it left', async () => {
    const at = await killed({ orphan: true })
    const [orphan = 0] = ofLoop(at)
    const line = async (): Promise<string> => (await ralph(at, ['statusline'])).stdout
    const died = '✕ demo 0/1 #1 died\n'
    expect(await line()).toBe(died)
    await ralph(at, ['status', 'demo'])
    expect(at.state()).toMatchObject({ status: 'stopped', died: true })
    expect(await line()).toBe(died)
    const screen = onScreen(at, ['attach', 'demo'], { columns: 80 })
    await screen.until('✕ died')
    await screen.until('An agent still runs')
    expect(screen.text()).toContain(String(orphan))
    expect(screen.text()).toContain('ralph stop demo')
    expect(screen.text()).toContain('ralph resume demo')
    screen.type('3')
    await screen.until('half.txt')
    // Nothing has ended: there is no result to look at.
    screen.type('\rq')
    expect((await screen.ended).text).not.toMatch(/undone|No file is changed/)
    await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(at.state()).not.toHaveProperty('died')
    expect(await line()).toBe('‖ demo 0/1 stopped\n')
  })

  test('E1: stop ends the orphan, repairs nothing, and says how to go on', async () => {
    const at = await killed({ orphan: true })
    edits(at)
    const before = picture(at)
    const stop = await ralph(at, ['stop', 'demo'])
    expect(stop.code).toBe(0)
    expect(ofLoop(at)).toEqual([])
    expect(picture(at)).toBe(before)
    expect(stop.stdout).toContain('had died')
    expect(stop.stdout).toContain('ralph resume demo')
    expect(at.state().status).toBe('stopped')
  })

  test('E1: a loop that is refused (exit 2) repairs nothing', async () => {
    const at = await killed()
    edits(at)
    const before = picture(at)
    const again = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect([again.code, again.stderr]).toEqual([
      2,
      expect.stringContaining('an unfinished run of demo (died)'),
    ])
    expect(picture(at)).toBe(before)
  })
})

describe.each([
  ['branch', []],
  ['stash', ['--checkpoint', 'stash']],
])('O5: what was edited after the death stays (%s)', (_checkpoint, flags) => {
  const resume = ['resume', 'demo', '--agent-command', goodAgent, '--json']

  test('edits, new files, modes, links and renames stay through resume; half an attempt does not', async () => {
    const at = await killed({ flags, agent: worker('echo half > half.txt; echo half >> src/old.txt') })
    edits(at)
    at.write('new/deep/file.txt', 'new\n')
    chmodSync(join(at.repo, 'src/other.txt'), 0o755)
    symlinkSync('mine.txt', join(at.repo, 'link'))
    at.write('half.txt', 'made mine\n')
    const resumed = await ralph(at, resume)
    expect(resumed.code).toBe(0)
    expect(at.read('README.md')).toBe('# mine now\n')
    expect(at.read('mine.txt')).toBe('typed after the crash\n')
    expect(at.read('new/deep/file.txt')).toBe('new\n')
    expect(at.read('half.txt')).toBe('made mine\n')
    expect(statSync(join(at.repo, 'src/other.txt')).mode & 0o777).toBe(0o755)
    expect(readlinkSync(join(at.repo, 'link'))).toBe('mine.txt')
    expect(at.read('src/old.txt')).toBe('old\n')
    expect(at.git('show', 'refs/ralph/demo/attempts/1:src/old.txt')).toBe('old\nhalf')
    expect(at.git('show', 'refs/ralph/demo/attempts/1:mine.txt')).toBe('typed after the crash')
    expect(resumed.stderr).toContain('README.md')
  })

  test('through status and finish --cleanup too', async () => {
    const at = await killed({ flags })
    edits(at)
    await ralph(at, ['status'])
    const finish = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect([finish.code, at.git('branch', '--show-current')]).toEqual([0, 'main'])
    expect([at.read('README.md'), at.read('mine.txt')]).toEqual(['# mine now\n', 'typed after the crash\n'])
    expect(at.read('early.txt')).toBe('before the loop\n')
    expect(existsSync(join(at.repo, 'half.txt'))).toBe(false)
  })

  test('a folder that the user made of a file, and a file of a folder', async () => {
    const at = await killed({ flags })
    rmSync(join(at.repo, 'README.md'))
    at.write('README.md/inside.txt', 'mine\n')
    rmSync(join(at.repo, 'src'), { recursive: true })
    at.write('src', 'mine\n')
    expect((await ralph(at, resume)).code).toBe(0)
    expect([at.read('README.md/inside.txt'), at.read('src')]).toEqual(['mine\n', 'mine\n'])
  })

  test('a file that the user deleted comes back and is named; a renamed folder is named file by file', async () => {
    const at = await killed({ flags })
    rmSync(join(at.repo, 'README.md'))
    renameSync(join(at.repo, 'src'), join(at.repo, 'lib'))
    const resumed = await ralph(at, resume)
    expect(resumed.code).toBe(0)
    expect([at.read('README.md'), at.read('src/old.txt')]).toEqual(['# scratch\n', 'old\n'])
    expect(resumed.stderr).toMatch(/it is back: .*README\.md/)
    expect(resumed.stderr).toMatch(/git restore --source=\w{12} -- .*':\/lib\/old\.txt'/)
    at.git('restore', '--source=refs/ralph/demo/attempts/1', '--', 'lib/old.txt')
    expect(at.read('lib/old.txt')).toBe('old\n')
  })

  /** A resume of a dead loop whose agent went on until then, beside the user. */
  const repaired = (): Promise<Scratch & { resumed: Finished; left: readonly number[] }> =>
    scene(`repaired ${flags.join(' ')}`, async () => {
      const at = await killed({ flags, orphan: true })
      edits(at)
      return { ...at, resumed: await ralph(at, resume), left: ofLoop(at) }
    })

  test('an orphan that lived until the repair: named file by file with its ref before anything is undone', async () => {
    const { resumed, left, ...at } = await repaired()
    expect([resumed.code, left]).toEqual([0, []])
    const kept = at.git('rev-parse', '--short=12', 'refs/ralph/demo/attempts/1')
    // One warning and one command for all that the same is true of.
    const [, files = ''] =
      new RegExp(`git restore --source=${kept} -- ((?:':/[^']+' ?)+)$`, 'm').exec(resumed.stderr) ?? []
    const paths = files.split(' ').map((file) => file.slice(1, -1))
    expect(paths).toEqual(expect.arrayContaining([':/README.md', ':/mine.txt']))
    const said = resumed.stderr.split('\n').filter((line) => line.includes('may be yours'))
    expect(new Set(said).size).toBe(1)
    at.git('restore', `--source=${kept}`, '--', ...paths)
    expect([at.read('README.md'), at.read('mine.txt')]).toEqual(['# mine now\n', 'typed after the crash\n'])
    // A warning event as well.
    expect(resumed.stdout).toMatch(/"type":"warning".*mine\.txt/)
  })

  test('B9: what a resume undid and may be the user’s is in its summary too', async () => {
    const at = await killed({ flags, orphan: true })
    edits(at)
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(resumed.code).toBe(0)
    const summary = resumed.stdout.slice(resumed.stdout.indexOf('✓ done'))
    const kept = at.git('rev-parse', '--short=12', 'refs/ralph/demo/attempts/1')
    expect(summary).toMatch(/^ {2}note: .*mine\.txt may be yours: they changed while/m)
    expect(summary).toMatch(new RegExp(`git restore --source=${kept} -- .*':/mine.txt'`))
    expect(summary.match(/may be yours/g)).toHaveLength(1)
  })

  test('E7: what a resume undid and may be the user’s outlives a cleaning of the attempts', async () => {
    const at = await repaired()
    expect(at.resumed.code).toBe(0)
    const kept = at.git('rev-parse', '--short=12', 'refs/ralph/demo/attempts/1')
    const cleaned = await ralph(at, ['clean', 'demo', '--attempts', '--yes'])
    expect(cleaned.stdout).toContain(`refs/ralph/demo/moved/1/beside/${kept}`)
    at.git('gc', '-q', '--prune=now')
    at.git('restore', `--source=${kept}`, '--', ':/mine.txt')
    expect(at.read('mine.txt')).toBe('typed after the crash\n')
  })

  test('an orphan that stop has ended: what changed after that stays, what changed before is named', async () => {
    const at = await killed({ flags, orphan: true })
    at.write('doubt.txt', 'mine or not\n')
    expect((await ralph(at, ['stop', 'demo'])).code).toBe(0)
    edits(at)
    const resumed = await ralph(at, resume)
    expect(resumed.code).toBe(0)
    expect([at.read('README.md'), at.read('mine.txt')]).toEqual(['# mine now\n', 'typed after the crash\n'])
    expect(existsSync(join(at.repo, 'doubt.txt'))).toBe(false)
    expect(resumed.stderr).toContain("-- ':/doubt.txt'")
    // F43: an hour of output later it is still told.
    expect((await ralph(at, ['status', 'demo'])).stdout).toContain("-- ':/doubt.txt'")
    const back = /git restore --source=.*doubt\.txt.*$/m.exec(resumed.stderr)?.[0] ?? ''
    execFileSync('sh', ['-c', back], { cwd: at.repo, env: at.env })
    expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain('may be yours')
  })

  test('F7: a finish that is refused for what was known before its repair repairs nothing', async () => {
    const at = await killed({ flags: ['--checkpoint', 'stash'] })
    const before = picture(at)
    for (const choice of [['--squash'], ['--keep', '--rename']]) {
      const refused = await ralph(at, ['finish', 'demo', ...choice])
      expect([refused.code, refused.stdout]).toEqual([2, ''])
      expect(refused.stderr).toMatch(/it has no commits to (squash|rename)[^]*Nothing was touched/)
    }
    expect(picture(at)).toBe(before)
  })

  test('F11: a file that is written anew after a repair undid it is not in the command that status names', async () => {
    const at = await repaired()
    expect(at.resumed.code).toBe(0)
    at.write('mine.txt', 'written anew\n')
    const named = (await ralph(at, ['status', 'demo'])).stdout
    expect(named).toMatch(/ {2}note: (?!.*mine\.txt).*README\.md.* may be yours/)
    execFileSync('sh', ['-c', /git restore --source=.*$/m.exec(named)?.[0] ?? ''], {
      cwd: at.repo,
      env: at.env,
    })
    expect([at.read('README.md'), at.read('mine.txt')]).toEqual(['# mine now\n', 'written anew\n'])
    expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain('git restore')
  })

  test('the plan that the user edited stays, but boxes that the dead attempt may have ticked do not count', async () => {
    const at = await killed({
      flags,
      stories: 2,
      agent: worker(`sed -i 's/\\[ \\]/[x]/' ${tasks}; echo half > half.txt`),
    })
    at.write(tasks, `${at.read(tasks)}\n## 3. Story 3\n\n- [ ] 3.1 third\n`)
    const resumed = await ralph(at, resume)
    expect(resumed.code).toBe(0)
    expect(at.state().iterations.map(({ story_id, verdict }) => [story_id, verdict])).toEqual([
      ['1', 'interrupted'],
      ['1', 'complete'],
      ['2', 'complete'],
      ['3', 'complete'],
    ])
    expect(existsSync(join(at.repo, 'story-1.txt'))).toBe(true)
  })

  test('a repair that was killed: its torn files are not the user’s, what they edited before and after it stays', async () => {
    const at = await killed({
      flags,
      agent: worker('for i in 1 2; do echo half > half-$i.txt; done; echo half > src/old.txt'),
    })
    edits(at)
    // The repair is killed in the middle of its revert.
    await killedWhenStuck(at, ['finish', 'demo', '--keep'], stuckGit(at, '*checkout-index*'))
    await longAfterRepair(at)
    at.write('later.txt', 'after the second crash\n')
    expect((await ralph(at, resume)).code).toBe(0)
    expect([at.read('README.md'), at.read('mine.txt')]).toEqual(['# mine now\n', 'typed after the crash\n'])
    expect(at.read('later.txt')).toBe('after the second crash\n')
    expect(readdirSync(at.repo).filter((name) => name.startsWith('half'))).toEqual([])
    expect(at.read('src/old.txt')).toBe('old\n')
  })
})

/** That a repair began is a record of the journal, which nobody can age: until a change is later than its tolerance of 2 s. */
async function longAfterRepair(at: Scratch): Promise<void> {
  const probe = join(at.root, 'probe')
  const diedMs = statSync(join(at.repo, '.git/ralph/changes/demo/alive')).mtimeMs
  do {
    await delay(50)
    writeFileSync(probe, '')
  } while (statSync(probe).ctimeMs <= diedMs + 2000)
}

describe('where the user has moved on', () => {
  const resume = ['resume', 'demo', '--agent-command', goodAgent, '--json']

  test.each([
    ['branch', [], 'ralph/demo'],
    ['stash', ['--checkpoint', 'stash'], 'main'],
  ])(
    'O5: on another branch with changes: refused with exit 2, nothing touched (%s)',
    async (_mode, flags, branch) => {
      const at = await killed({ flags })
      at.git('stash', '-uq')
      at.git('checkout', '-q', '-b', 'elsewhere', 'main')
      at.write('README.md', '# half a thought\n')
      const before = picture(at)
      for (const args of [
        resume,
        ['finish', 'demo', '--cleanup'],
        ['loop', 'demo', '--fresh', '--agent-command', goodAgent],
      ]) {
        const refused = await ralph(at, args)
        expect([args, refused.code, refused.stderr]).toEqual([
          args,
          2,
          expect.stringContaining(`git switch ${branch}`),
        ])
        expect(picture(at)).toBe(before)
      }
    },
  )

  test('O5: on another branch, everything committed: back on the loop’s branch, their commit stays', async () => {
    const at = await killed()
    at.git('stash', '-uq')
    at.git('checkout', '-q', 'main')
    at.write('README.md', '# mine\n')
    at.git('commit', '-qam', 'beside the loop')
    const theirs = at.git('rev-parse', 'main')
    const resumed = await ralph(at, resume)
    expect([resumed.code, at.git('branch', '--show-current'), at.git('rev-parse', 'main')]).toEqual([
      0,
      'ralph/demo',
      theirs,
    ])
    expect([at.read('README.md'), at.read('story-1.txt')]).toEqual(['# scratch\n', 'work of 1\n'])
    expect(existsSync(join(at.repo, 'half.txt'))).toBe(false)
  })

  test('O5: another change in the tree of a dead loop: refused with exit 2, so that half an attempt is not taken for the user’s', async () => {
    const at = await killed({ flags: ['--checkpoint', 'stash'] })
    at.write('openspec/changes/other/tasks.md', '## 1. Other\n\n- [ ] 1.1 x\n')
    const before = picture(at)
    const other = ['loop', 'other', '--checkpoint', 'stash', '--agent-command', goodAgent]
    expect(await ralph(at, other)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/Nothing was touched[\s\S]*ralph resume demo/),
    })
    expect(picture(at)).toBe(before)
    expect((await ralph(at, ['finish', 'demo', '--keep'])).code).toBe(0)
    expect((await ralph(at, other)).code).toBe(0)
    expect(existsSync(join(at.repo, 'half.txt'))).toBe(false)
  })

  test('O5: their commit on their own branch, where a loop with stashes stands, is not taken back', async () => {
    const at = await killed({ flags: ['--checkpoint', 'stash'] })
    edits(at)
    at.git('add', 'mine.txt')
    at.git('commit', '-qm', 'mine')
    const theirs = at.git('rev-parse', 'main')
    const resumed = await ralph(at, resume)
    expect([resumed.code, at.git('rev-parse', 'main')]).toEqual([0, theirs])
    expect([at.read('mine.txt'), at.read('README.md')]).toEqual(['typed after the crash\n', '# mine now\n'])
    expect(at.git('status', '--porcelain', 'mine.txt')).toBe('')
    expect(existsSync(join(at.repo, 'half.txt'))).toBe(false)
  })

  test('O5: their commit on the loop’s own branch: what is in it stays, and the commit is named', async () => {
    const at = await killed()
    edits(at)
    at.git('add', 'mine.txt')
    at.git('commit', '-qm', 'mine')
    const theirs = at.git('rev-parse', 'HEAD')
    const resumed = await ralph(at, resume)
    expect([resumed.code, at.read('mine.txt')]).toEqual([0, 'typed after the crash\n'])
    expect(resumed.stderr).toContain(theirs.slice(0, 12))
    expect(at.git('for-each-ref', '--contains', theirs)).toContain('refs/ralph/demo/')
  })

  test.for([['resume'], ['finish'], ['loop']])(
    'O5: their commit at a detached HEAD, in no ref: %s names it with what holds it',
    async ([command]) => {
      const at = await killed({ agent: worker('true') })
      at.git('checkout', '-q', '--detach')
      at.write('mine.txt', 'typed after the crash\n')
      at.git('add', 'mine.txt')
      at.git('commit', '-qm', 'mine')
      const theirs = at.git('rev-parse', 'HEAD')
      const end = await ralph(
        at,
        command === 'resume'
          ? resume
          : command === 'finish'
            ? ['finish', 'demo', '--cleanup']
            : ['loop', 'demo', '--fresh', '--agent-command', goodAgent],
      )
      expect(end.code).toBe(0)
      const holders = at.git('for-each-ref', '--contains', theirs, '--format=%(refname)').split('\n')
      // A fresh loop begins where the user stands: on it.
      const isOnBranch = command === 'loop'
      expect(holders.includes('refs/heads/ralph/demo')).toBe(isOnBranch)
      const [, ref = ''] = new RegExp(`${theirs.slice(0, 12)} .*kept as (\\S+):`).exec(end.stderr) ?? []
      if (!isOnBranch) expect(at.git('rev-parse', ref)).toBe(theirs)
    },
  )

  test('O5: in the middle of a merge: refused with exit 2, and the merge is still theirs', async () => {
    const at = await killed()
    at.git('worktree', 'add', '-qb', 'feature', '../feature', 'main')
    at.write('../feature/feature.txt', 'feature\n')
    at.git('-C', '../feature', 'add', '-A')
    at.git('-C', '../feature', 'commit', '-qm', 'feature')
    at.git('worktree', 'remove', '../feature')
    at.git('merge', '-q', '--no-commit', '--no-ff', 'feature')
    const before = picture(at)
    const refused = await ralph(at, resume)
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('in the middle of a merge')])
    expect(picture(at)).toBe(before)
    expect(existsSync(join(at.repo, '.git/MERGE_HEAD'))).toBe(true)
    at.git('merge', '--abort')
    at.git('bisect', 'start')
    // A command that git has.
    expect((await ralph(at, resume)).stderr).toContain('End it (git bisect reset)')
  })

  test('O5: a work tree of its own: what was edited there after the death stays there', async () => {
    const at = await killed({ flags: ['--worktree'] })
    const tree = join(at.root, 'repo-ralph-demo')
    writeFileSync(join(tree, 'mine.txt'), 'typed there\n')
    const before = picture(at)
    await ralph(at, ['status'])
    const resumed = await ralph(at, resume)
    expect([
      resumed.code,
      picture(at)
        .split('\n')
        .filter((line) => !line.includes('refs/')),
    ]).toEqual([0, before.split('\n').filter((line) => !line.includes('refs/'))])
    expect(readFileSync(join(tree, 'mine.txt'), 'utf8')).toBe('typed there\n')
    expect(existsSync(join(tree, 'half.txt'))).toBe(false)
  })
})

/** A git that never returns from what matches `pattern` (of `"$GIT_INDEX_FILE $*"`), and says when it is there. */
function stuckGit(at: Scratch, pattern: string): NodeJS.ProcessEnv {
  mkdirSync(join(at.root, 'bin'), { recursive: true })
  const git = execFileSync('which', ['git'], { encoding: 'utf8' }).trim()
  at.script(
    'bin/git',
    `#!/bin/sh\ncase "$GIT_INDEX_FILE $*" in ${pattern}) : > ${at.root}/stuck; exec sleep 100;; esac\nexec ${git} "$@"\n`,
  )
  return { PATH: `${join(at.root, 'bin')}:${at.env['PATH'] ?? ''}` }
}

async function killedWhenStuck(at: Scratch, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const running = start(at, args, { env })
  while (!existsSync(join(at.root, 'stuck')) && running.child.exitCode === null) await delay(20)
  expect(existsSync(join(at.root, 'stuck'))).toBe(true)
  running.child.kill('SIGKILL')
  await running.ended
}

describe('the final cleanup', () => {
  test.each([
    ['in it', "*update-ref*'ralph: cleanup'*", /the cleanup was completed/],
    ['before its first step', '*finish-index*', /everything is on main/i],
  ])(
    'O20: killed %s, then resume --on-complete cleanup: completed, exit 0, and it says so',
    async (_when, pattern, said) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('mine.txt', 'mine\n')
      const loop = ['loop', 'demo', '--agent-command', goodAgent, '--on-complete', 'cleanup', '--json']
      await killedWhenStuck(at, loop, stuckGit(at, pattern))
      const status = JSON.parse((await ralph(at, ['status', 'demo', '--json'])).stdout) as Record<
        string,
        unknown
      >
      expect(status).toMatchObject({ status: 'done', alive: false, choice: 'later' })
      const resumed = await ralph(at, ['resume', 'demo', '--on-complete', 'cleanup'])
      expect([resumed.code, resumed.stderr]).toEqual([0, expect.stringMatching(said)])
      expect(at.git('branch', '--format=%(refname:short)')).toBe('main')
      expect([at.read('mine.txt'), at.read('story-1.txt')]).toEqual(['mine\n', 'work of 1\n'])
      const again = await ralph(at, ['resume', 'demo', '--on-complete', 'cleanup'])
      expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('done already')])
    },
  )
})

describe('locks', () => {
  function stuckRun(): Promise<Scratch> {
    const agent =
      '[ "$RALPH_STORY" = 1 ] && echo "<promise>COMPLETE</promise>" || echo "<promise>FAILED: no</promise>"'
    const loop = ['loop', 'demo', '--max-retries', '0', '--agent-command', agent]
    return after(loop, { tasks: tasksOf(2), code: 3 })
  }

  test('O16: two resumes, the first with a slow openspec: one wins, the other exits 7, no iteration twice', async () => {
    const at = await stuckRun()
    mkdirSync(join(at.root, 'bin'))
    at.script(
      'bin/openspec',
      `#!/bin/sh\n: > ${at.root}/asked; while [ ! -e ${at.root}/go ]; do sleep 0.05; done; exit 1\n`,
    )
    const resume = ['resume', 'demo', '--agent-command', goodAgent, '--json']
    const slow = start(at, resume, { env: { PATH: `${join(at.root, 'bin')}:${at.env['PATH'] ?? ''}` } })
    while (!existsSync(join(at.root, 'asked')) && slow.child.exitCode === null) await delay(20)
    const quick = await ralph(at, resume)
    writeFileSync(join(at.root, 'go'), '')
    const codes = [(await slow.ended).code, quick.code]
    expect(codes).toEqual([0, 7])
    expect(at.state().iterations.map(({ n }) => n)).toEqual([1, 2, 3])
    const journal = readFileSync(join(at.repo, '.git/ralph/changes/demo/journal.ndjson'), 'utf8')
    const begun = [...journal.matchAll(/"type":"iteration.started","n":(\d+)/g)].map(([, n]) => n)
    expect(begun).toEqual(['1', '2', '3'])
  })

  test('O16: while a death is recorded status does not say running, and resume waits instead of exiting 7', async () => {
    const at = await killed()
    const identity = { pid: process.pid, started: processIdentity(process.pid), bootId: bootId(), isAlive }
    const what = { change: 'demo', worktree: at.repo, since: 'now', purpose: 'record' as const }
    const lock = await fileLock(join(at.repo, '.git/ralph/changes/demo/lock.json'), what, identity).acquire()
    const resuming = start(at, ['resume', 'demo', '--agent-command', goodAgent, '--json'])
    const status = await ralph(at, ['status', 'demo', '--json'])
    expect(JSON.parse(status.stdout)).toMatchObject({ status: 'stopped', alive: false })
    await lock.release()
    expect((await resuming.ended).code).toBe(0)
  })

  test('section 6.10: locks are released when opening fails', async () => {
    const at = await stuckRun()
    rmSync(join(at.repo, '.claude'), { recursive: true })
    at.write('.claude', 'a file in the way')
    expect((await ralph(at, ['finish', 'demo', '--keep'])).code).not.toBe(0)
    expect(existsSync(join(at.repo, '.git/ralph/lock.json'))).toBe(false)
    expect(existsSync(join(at.repo, '.git/ralph/changes/demo/lock.json'))).toBe(false)
    rmSync(join(at.repo, '.claude'))
    expect((await ralph(at, ['finish', 'demo', '--keep'])).code).toBe(0)
  })
})
