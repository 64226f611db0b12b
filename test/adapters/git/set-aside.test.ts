// What a revert has no copy of: the user's ignored data and repositories are put back where they were, all else is moved aside, nothing is deleted.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Checkpoints } from '../../../src/ports.ts'
import { run } from '../../shell.ts'
import { worldOfTest, type Strategy, type World } from './world.ts'

const sh = (w: World, script: string): string => run('sh', ['-ec', script], { cwd: w.dir, env: w.env })

async function begun(w: World, strategy: Strategy): Promise<Checkpoints> {
  // Later than the files: what is written while a revert begins is kept with the attempt, however large.
  const checkpoints = w.checkpoints(strategy, { clock: { now: () => Date.now() + 5_000 } })
  await checkpoints.preflight('start')
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  return checkpoints
}

const told = (w: World, code: string): string[] =>
  w.journal.flatMap((event) => (event.type === 'warning' && event.code === code ? [event.message] : []))

/** The command that a message ends with. */
const wayBack = (message = ''): string => message.split('To get it back: ')[1] ?? 'false'

/** More than an attempt keeps of what only the agent's rules hide. */
const large = Buffer.alloc(21_000_000, 'data\n')

function ignoredData(w: World): void {
  w.write('.gitignore', 'ign/\n*.log\n.env\n')
  w.git('add', '.gitignore')
  w.git('commit', '-qm', 'ignore')
  w.write('ign/app.sqlite', large)
  w.write('ign/deep/few', 'few\n')
}

function expectBack(w: World): void {
  expect(readFileSync(join(w.dir, 'ign/app.sqlite')).equals(large)).toBe(true)
  expect(w.read('ign/deep/few')).toBe('few\n')
}

describe.each<Strategy>(['branch', 'stash'])('ignored data that was moved (%s)', (strategy) => {
  it.each([
    ['renamed, and the new name is ignored', 'mv ign storage; sed -i s,ign/,storage/, .gitignore'],
    ['renamed, and the new name is not ignored', 'mv ign storage'],
    ['moved into a folder that ignores itself', "mkdir store; mv ign store/x; echo '*' > store/.gitignore"],
    ['something else is in its place', 'mv ign store; echo store >> .gitignore; echo file > ign'],
    ['an empty folder is in its place', 'mv ign store; echo store >> .gitignore; mkdir ign'],
    [
      'in the place of a tracked file',
      'rm a.txt; mv ign a.txt; echo a.txt/app.sqlite >> .gitignore; echo deep >> .gitignore',
    ],
  ])('G16: %s: it is back in its place, and told', async (_name, script) => {
    const w = worldOfTest()
    ignoredData(w)
    const before = w.read('a.txt')
    const checkpoints = await begun(w, strategy)
    sh(w, script)
    const kept = await checkpoints.keep(1)
    expect(kept.warnings.join('\n')).not.toContain('not kept')
    expect(await checkpoints.restore()).toMatchObject({ stays: [] })
    expectBack(w)
    expect(w.read('a.txt')).toBe(before)
    expect(w.user('status', '--porcelain')).toBe('')
    expect(told(w, 'moved_back').join('\n')).toContain('ign/ was moved to ')
    expect(told(w, 'set_aside')).toEqual([])
  })

  it.each([
    ['a folder', 'mv ign ign.bak; mkdir ign; echo new > ign/app.sqlite', 'ign'],
    ['a file', 'mv .env env.bak; echo new > .env', '.env'],
    ['a file, by a link to its new place', 'mv .env conf; ln -s conf .env', '.env'],
  ])(
    'G16: %s that the attempt has put another in the place of is back, and both can be had',
    async (_name, script, place) => {
      const w = worldOfTest()
      ignoredData(w)
      w.write('.env', 'SECRET\n')
      const checkpoints = await begun(w, strategy)
      sh(w, script)
      await checkpoints.keep(1)
      expect(await checkpoints.restore()).toMatchObject({ stays: [] })
      expectBack(w)
      expect(w.read('.env')).toBe('SECRET\n')
      expect(w.user('status', '--porcelain')).toBe('')
      const [message = ''] = told(w, 'set_aside')
      expect(message).toContain(`in the place of ${place}`)
      sh(w, message.split('To have both: ')[1] ?? 'false')
      expect(sh(w, `ls -d ${place}.attempt`).trim()).toBe(`${place}.attempt`)
    },
  )

  it('G19: a repository of the user’s that the attempt has put a folder in the place of is back', async () => {
    const w = worldOfTest()
    sh(w, 'git init -q theirs; echo v > theirs/v')
    const checkpoints = await begun(w, strategy)
    sh(w, 'mv theirs theirs.old; mkdir theirs; echo agent > theirs/n')
    const { warnings } = await checkpoints.keep(1)
    expect(warnings.join('\n')).not.toContain('cannot bring it back')
    await checkpoints.restore()
    expect(sh(w, 'ls -A theirs; ls -d theirs.old 2>&1 || true')).toMatch(/^\.git\nv\nls: .*theirs\.old/)
  })

  it('G16: a private file that the attempt moved over a tracked one is back, and so is the tracked one', async () => {
    const w = worldOfTest()
    ignoredData(w)
    w.write('.env', 'SECRET\n')
    const before = w.read('a.txt')
    const checkpoints = await begun(w, strategy)
    sh(w, 'mv .env a.txt')
    expect((await checkpoints.keep(1, true)).refused).toContain('.env is a file that git ignores')
    await checkpoints.restore()
    expect([w.read('.env'), w.read('a.txt')]).toEqual(['SECRET\n', before])
  })

  it('G16: a private file that is moved into a new repository fails the attempt, too', async () => {
    const w = worldOfTest()
    ignoredData(w)
    w.write('.env', 'SECRET\n')
    const checkpoints = await begun(w, strategy)
    sh(w, 'git init -q nested; mv .env nested/e')
    expect((await checkpoints.keep(1, true)).refused).toContain('.env is a file that git ignores')
    await checkpoints.restore()
    expect(w.read('.env')).toBe('SECRET\n')
  })

  it('G16: a link in the place of ignored data does not hide that it is gone', async () => {
    const w = worldOfTest()
    ignoredData(w)
    w.write('.env', 'SECRET\n')
    const checkpoints = await begun(w, strategy)
    sh(w, 'rm .env; ln -s nowhere .env')
    await checkpoints.keep(1)
    expect(told(w, 'set_aside').join()).toContain('gone since the attempt began: .env')
  })

  it('G16: ignored files that an attempt deletes are named; what builds or ralph make again is not', async () => {
    const w = worldOfTest()
    ignoredData(w)
    w.write('.gitignore', 'ign/\n.env\ndist/\n.claude/\n')
    w.write('.env', 'SECRET\n')
    w.write('dist/bundle', 'b\n')
    w.write('.claude/loop-state.json', '{}')
    const checkpoints = await begun(w, strategy)
    sh(w, 'rm -r .env ign/* dist .claude')
    await checkpoints.keep(1)
    expect(told(w, 'set_aside')).toEqual([
      'gone since the attempt began: .env, ign/. It is in no checkpoint, for git does not look there',
    ])
  })

  it('G16: ralph’s own state file is nobody’s loss', async () => {
    const w = worldOfTest()
    ignoredData(w)
    w.write('.gitignore', 'ign/\n.claude/loop-state.json*\n')
    w.write('.claude/loop-state.json', '{}')
    const checkpoints = await begun(w, strategy)
    sh(w, 'rm -r .claude')
    await checkpoints.keep(1)
    expect(told(w, 'set_aside')).toEqual([])
  })

  it('G16: a private file that is moved to where git sees it is in no checkpoint: the attempt fails', async () => {
    const w = worldOfTest()
    ignoredData(w)
    w.write('.env', 'SECRET\n')
    const checkpoints = await begun(w, strategy)
    sh(w, 'mv .env settings.ini; echo work > work.txt')
    expect((await checkpoints.keep(1, true)).refused).toMatch(
      /^\.env is a file that git ignores.* moved to settings\.ini/,
    )
    await checkpoints.restore()
    expect(w.read('.env')).toBe('SECRET\n')
  })

  it.each([
    ['committed', 'git add -f forced.log; git commit -qm forced'],
    ['staged', 'git add -f forced.log'],
  ])('G16: a new file that the agent has %s against the ignore rules is saved', async (_name, script) => {
    const w = worldOfTest()
    ignoredData(w)
    w.write('mine.log', 'the user’s\n')
    const checkpoints = await begun(w, strategy)
    sh(w, `echo work > forced.log; ${script}; git add -f mine.log`)
    const kept = await checkpoints.keep(1, true)
    expect(w.git('ls-tree', '-r', '--name-only', kept.tree).split('\n')).toContain('forced.log')
    expect(w.git('ls-tree', '-r', '--name-only', kept.tree)).not.toContain('mine.log')
  })

  it('G16: moved along with the folder around it, files too', async () => {
    const w = worldOfTest()
    w.write('.gitignore', 'ign/\n.env\n')
    w.write('data/t.txt', 't\n')
    w.git('add', '-A')
    w.git('commit', '-qm', 'data')
    w.write('data/ign/big', 'big\n')
    w.write('data/.env', 'SECRET\n')
    const checkpoints = await begun(w, strategy)
    sh(w, 'mv data data2')
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect([w.read('data/ign/big'), w.read('data/.env'), w.read('data/t.txt')]).toEqual([
      'big\n',
      'SECRET\n',
      't\n',
    ])
    expect(existsSync(join(w.dir, 'data2'))).toBe(false)
  })

  it('G16: a file that git ignores as before stays under its new name', async () => {
    const w = worldOfTest()
    w.write('.gitignore', '*.log\n')
    w.git('add', '-A')
    w.git('commit', '-qm', 'ignore')
    w.write('app.log', 'rotated\n')
    const checkpoints = await begun(w, strategy)
    sh(w, 'mv app.log app-1.log')
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect(w.read('app-1.log')).toBe('rotated\n')
    expect(existsSync(join(w.dir, 'app.log'))).toBe(false)
  })

  it.each([
    ['too large', (w: World) => w.write('made/dump', large)],
    [
      'too many',
      (w: World) => {
        mkdirSync(join(w.dir, 'made'))
        for (let at = 0; at < 2_100; at += 1) writeFileSync(join(w.dir, `made/${at}`), `${at}`)
        w.write('made/dump', large.subarray(0, 100))
      },
    ],
  ])(
    'G16: what the agent hides and no attempt holds, %s, is moved aside and comes back by what is told',
    async (_name, make) => {
      const w = worldOfTest()
      const checkpoints = await begun(w, strategy)
      make(w)
      w.write('.gitignore', 'made/\n')
      const dump = readFileSync(join(w.dir, 'made/dump'))
      await checkpoints.keep(1)
      await checkpoints.restore()
      expect(existsSync(join(w.dir, 'made'))).toBe(false)
      const [message, ...more] = told(w, 'set_aside')
      expect(more).toEqual([])
      expect(message).toContain('.git/ralph/checkpoints/demo/aside/1/made')
      sh(w, wayBack(message))
      expect(readFileSync(join(w.dir, 'made/dump')).equals(dump)).toBe(true)
    },
  )

  it('G16: what is ignored and lies where a tracked file has to be is moved aside', async () => {
    const w = worldOfTest()
    w.write('.gitignore', '*.log\n')
    w.git('add', '-A')
    w.git('commit', '-qm', 'ignore')
    const before = w.read('a.txt')
    const checkpoints = await begun(w, strategy)
    sh(w, 'rm a.txt; mkdir a.txt; echo mine > a.txt/x.log')
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect(w.read('a.txt')).toBe(before)
    const [message] = told(w, 'set_aside')
    sh(w, `rm a.txt; ${wayBack(message)}`)
    expect(w.read('a.txt/x.log')).toBe('mine\n')
  })
})

/** With a commit, an edit, an untracked and an ignored file. */
function repository(w: World, path: string): void {
  w.write(`${path}/f`, '1\n')
  w.write(`${path}/.gitignore`, 'i\n')
  w.user('init', '-q', path)
  w.user('-C', path, 'add', '-A')
  w.user('-C', path, 'commit', '-qm', 'one')
  for (const name of ['f', 'u', 'i']) w.write(`${path}/${name}`, `${name} of ${path}\n`)
}

function expectRepository(w: World, path: string, of = path): void {
  expect(['f', 'u', 'i'].map((name) => w.read(`${path}/${name}`))).toEqual(
    ['f', 'u', 'i'].map((name) => `${name} of ${of}\n`),
  )
  expect(w.user('-C', path, 'status', '--porcelain')).toBe(' M f\n?? u\n')
}

describe.each<Strategy>(['branch', 'stash'])('repositories inside (%s)', (strategy) => {
  it('G19: the user’s own, moved by an attempt that failed, are back in their places', async () => {
    const w = worldOfTest()
    const paths = ['vendor/x', 'nest2', 'nest4']
    for (const path of paths) repository(w, path)
    const checkpoints = await begun(w, strategy)
    sh(w, 'mv vendor vendor2; mv nest2 moved; echo moved >> .gitignore; mv nest4 src/nest4')
    const { warnings } = await checkpoints.keep(1)
    await checkpoints.restore()
    for (const path of paths) expectRepository(w, path)
    for (const path of ['vendor2', 'moved', 'src/nest4']) expect(existsSync(join(w.dir, path))).toBe(false)
    expect(told(w, 'moved_back').toSorted()).toEqual([
      'nest2/ was moved to moved/ while the attempt ran; it is back in its place',
      'nest4/ was moved to src/nest4/ while the attempt ran; it is back in its place',
      'vendor/ was moved to vendor2/ while the attempt ran; it is back in its place',
    ])
    expect(warnings.join('\n')).not.toContain('disappeared while')
  })

  it('G19: moved by a complete one they stay there, and that is told', async () => {
    const w = worldOfTest()
    repository(w, 'vendor/x')
    const checkpoints = await begun(w, strategy)
    sh(w, 'mv vendor vendor2; echo new > new.txt')
    const { warnings } = await checkpoints.keep(1, true)
    expect(warnings).toContain('the repository vendor/x/ was moved to vendor2/x/ while the attempt ran')
    await checkpoints.save('1', 'checkpoint: 1')
    expectRepository(w, 'vendor2/x', 'vendor/x')
  })

  it('G19: one that came while the attempt ran is named with its place, also deep in what the agent hides', async () => {
    const w = worldOfTest()
    const checkpoints = await begun(w, strategy)
    for (const path of ['nn', 'hid/inner/r']) repository(w, path)
    w.write('.gitignore', 'hid/\n')
    await checkpoints.keep(1)
    await checkpoints.restore()
    const messages = told(w, 'set_aside')
    expect(messages).toHaveLength(2)
    for (const message of messages) sh(w, wayBack(message))
    for (const path of ['nn', 'hid/inner/r']) expectRepository(w, path)
  })
})

describe.each<Strategy>(['branch', 'stash'])(
  'a repository that a story makes where the user has files (%s)',
  (strategy) => {
    it.each([
      ['leaves alone', 'true', true],
      ['deletes with its folder', 'rm -rf dir', false],
      ['deletes', 'rm -rf dir/.git', false],
    ])(
      'G16: one that a later, failing attempt %s stays, or is named; the files and empty folders around it are back',
      async (_name, script, isThere) => {
        const w = worldOfTest()
        w.write('dir/mine.txt', 'mine\n')
        mkdirSync(join(w.dir, 'dir/empty'))
        const checkpoints = await begun(w, strategy)
        sh(w, 'git init -q dir')
        w.write('work.txt', 'work\n')
        await checkpoints.keep(1)
        await checkpoints.save('1', 'checkpoint: 1')
        await checkpoints.ensure('2')
        sh(w, script)
        const kept = await checkpoints.keep(2)
        await checkpoints.restore()
        expect(existsSync(join(w.dir, 'dir/.git'))).toBe(isThere)
        expect([existsSync(join(w.dir, 'dir/empty')), w.read('dir/mine.txt')]).toEqual([true, 'mine\n'])
        expect(told(w, 'set_aside')).toEqual([])
        expect(kept.warnings.some((text) => text.startsWith('the repository dir/ lost its .git'))).toBe(
          !isThere,
        )
        // Told once.
        await checkpoints.ensure('2')
        expect((await checkpoints.keep(3)).warnings.join()).not.toContain('lost its .git')
      },
    )
  },
)
