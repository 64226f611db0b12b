// What git does not see, and a failed attempt leaves all the same: pipes, folders beyond the longest path, files out of a sparse cone.
import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Checkpoints } from '../../../src/ports.ts'
import { run } from '../../shell.ts'
import { filesOf, makeWorld, type Strategy, type World } from './world.ts'

const worlds: World[] = []
const world = (): World => {
  const made = makeWorld()
  worlds.push(made)
  return made
}
afterEach(() => {
  // Node cannot remove what lies too deep.
  for (const made of worlds.splice(0)) run('rm', ['-rf', made.root], { cwd: '/', env: made.env })
})

const sh = (w: World, script: string): string => run('sh', ['-ec', script], { cwd: w.dir, env: w.env })

async function begun(w: World, strategy: Strategy): Promise<Checkpoints> {
  const checkpoints = w.checkpoints(strategy)
  await checkpoints.preflight('start')
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  return checkpoints
}

const isPipe = (w: World, path: string): boolean => lstatSync(join(w.dir, path)).isFIFO()
/** By steps: no path is long enough to name what lies there. */
function deep(w: World, folder: string, step: string, last: string): string {
  const script = `const fs = require('fs'); process.chdir(${JSON.stringify(folder)}); const name = 'd'.repeat(200); for (let i = 0; i < 45; i++) { ${step}; process.chdir(name) } ${last}`
  return execFileSync(process.execPath, ['-e', script], { cwd: w.dir, env: w.env, encoding: 'utf8' })
}
function dig(w: World, folder: string): void {
  mkdirSync(join(w.dir, folder), { recursive: true })
  deep(w, folder, "fs.mkdirSync(name); fs.writeFileSync('g', 'g')", "fs.writeFileSync('bottom', 'x')")
}
const bottom = (w: World, folder: string): string =>
  deep(w, folder, '', "process.stdout.write(fs.readFileSync('bottom', 'utf8'))")

describe.each<Strategy>(['branch', 'stash'])('what git does not see (%s)', (strategy) => {
  it('L: pipes and sockets of a failed attempt go, those that were there before stay, ignored ones too', async () => {
    const w = world()
    sh(w, 'mkfifo mine; mkdir own; mkfifo own/mine; mkdir build; mkfifo build/ignored')
    const checkpoints = await begun(w, strategy)
    sh(w, 'mkfifo pipe src/pipe own/pipe x.log; mkdir -p new/deep; mkfifo new/deep/pipe; mkfifo build/pipe')
    sh(
      w,
      `node -e 'require("net").createServer().listen("sock", () => process.kill(process.pid, "SIGKILL"))' || true`,
    )
    await checkpoints.keep(1)
    await checkpoints.restore()
    for (const path of ['pipe', 'src/pipe', 'own/pipe', 'new', 'sock'])
      expect([path, existsSync(join(w.dir, path))]).toEqual([path, false])
    for (const path of ['mine', 'own/mine', 'build/ignored', 'build/pipe', 'x.log'])
      expect([path, isPipe(w, path)]).toEqual([path, true])
  })

  it('L: a pipe that a complete story made stays in later reverts; a file that became one is told', async () => {
    const w = world()
    const checkpoints = await begun(w, strategy)
    sh(w, 'mkfifo pipe; rm src/b.txt; mkfifo src/b.txt')
    const { warnings } = await checkpoints.keep(1)
    expect(warnings.join()).toContain('src/b.txt was a file and is a pipe, a socket or a device now')
    await checkpoints.save('1', 'checkpoint: 1')
    await checkpoints.ensure('2')
    sh(w, 'mkfifo later; echo w > work.txt')
    await checkpoints.keep(2)
    await checkpoints.restore()
    expect([isPipe(w, 'pipe'), isPipe(w, 'src/b.txt'), existsSync(join(w.dir, 'later'))]).toEqual([
      true,
      true,
      false,
    ])
  })

  it('L: PATH_MAX: a folder deeper than any path is told and removed', async () => {
    const w = world()
    w.write('build/mine.o', 'ignored')
    const before = readdirSync(w.dir).sort()
    const checkpoints = await begun(w, strategy)
    dig(w, 'deep')
    dig(w, 'src/x')
    const { warnings } = await checkpoints.keep(1)
    expect(warnings.join('\n')).toMatch(/what is in deep\/d+\/d+\/… is nested too deeply/)
    await checkpoints.restore()
    await checkpoints.ensure('1')
    expect(readdirSync(w.dir).sort()).toEqual(before)
    expect(readdirSync(join(w.dir, 'src'))).toEqual(['b.txt'])
    expect(w.read('build/mine.o')).toBe('ignored')
  })

  it('L: PATH_MAX: one that was there before the loop, or that a complete story made, stays', async () => {
    const w = world()
    dig(w, 'mine')
    const checkpoints = await begun(w, strategy)
    dig(w, 'work')
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    await checkpoints.ensure('2')
    dig(w, 'failed')
    await checkpoints.keep(2)
    await checkpoints.restore()
    expect(bottom(w, 'mine') + bottom(w, 'work')).toBe('xx')
    expect(existsSync(join(w.dir, 'failed'))).toBe(false)
  })

  it('L: sparse checkout: a file out of the cone that a failed attempt wrote is absent again', async () => {
    const w = world()
    w.write('far/away.txt', 'far\n')
    w.write('far/kept.txt', 'kept\n')
    w.git('add', '-A')
    w.git('commit', '-qm', 'far')
    w.git('sparse-checkout', 'set', 'src')
    expect(existsSync(join(w.dir, 'far'))).toBe(false)
    w.write('far/kept.txt', 'kept\n')
    const checkpoints = await begun(w, strategy)
    w.write('far/away.txt', 'written by the agent\n')
    w.write('far/kept.txt', 'written by the agent\n')
    w.write('src/b.txt', 'changed\n')
    await checkpoints.keep(1)
    await checkpoints.restore()
    await checkpoints.ensure('1')
    expect(readdirSync(join(w.dir, 'far'))).toEqual(['kept.txt'])
    expect(w.read('far/kept.txt') + w.read('src/b.txt')).toBe('kept\ntwo\n')
    expect(w.git('show', 'refs/ralph/demo/attempts/1:far/away.txt')).toBe('written by the agent\n')
  })

  it.each(['disable', 'set far', 'set --no-cone /far/'])(
    'L: sparse checkout: what `sparse-checkout %s` of a failed attempt brought is left out again',
    async (deed) => {
      const w = world()
      w.write('far/away.txt', 'far\n')
      w.write('far/kept.txt', 'kept\n')
      w.git('add', '-A')
      w.git('commit', '-qm', 'far')
      w.git('sparse-checkout', 'set', 'src')
      w.write('far/kept.txt', 'kept\n')
      w.write('src/b.txt', 'edited by the user\n')
      const checkpoints = await begun(w, strategy)
      const files = (): string => sh(w, 'find . -path ./.git -prune -o -type f -print | sort')
      const before = files()
      sh(w, `git sparse-checkout ${deed} 2>&1`)
      await checkpoints.keep(1)
      await checkpoints.restore()
      await checkpoints.ensure('1')
      expect(files()).toBe(before)
      expect(w.read('src/b.txt')).toBe('edited by the user\n')
      expect(sh(w, 'git ls-files -t far/away.txt; git sparse-checkout list')).toBe('S far/away.txt\nsrc\n')
    },
  )

  describe('what `sparse-checkout` leaves out while an attempt runs is not deleted', () => {
    const sparse = `git sparse-checkout set --no-cone '/*' '!/src' 2>&1`
    const files = (w: World): Record<string, string> => filesOf(w.dir)
    const words = (w: World): string =>
      w.journal.flatMap((event) => (event.type === 'warning' ? [event.message] : [])).join('\n')
    async function withEdits(w: World): Promise<Checkpoints> {
      w.write('src/far/committed.txt', 'c\n')
      w.write('src/crlf.txt', 'a\r\nb\r\n')
      w.write('src/secret.txt', 's\n', 0o600)
      w.git('add', '-A')
      w.git('commit', '-qm', 'more')
      w.write('src/edited.txt', 'edited by the user\n')
      w.write('src/b.txt', 'edited by the user\n')
      w.write('src/staged.txt', 'staged by the user\n')
      w.git('add', 'src/staged.txt')
      return begun(w, strategy)
    }

    it('found by an attack: of one that counts nothing is taken out of the checkpoint, and all is back, with a line that says so', async () => {
      const w = world()
      const checkpoints = await withEdits(w)
      const before = files(w)
      w.write('src/work.txt', 'work\n')
      sh(w, `git add src/work.txt; rm -f a.txt; ${sparse}`)
      expect(existsSync(join(w.dir, 'src/far/committed.txt'))).toBe(false)
      const { gone } = await checkpoints.keep(1, true)
      expect(gone).toEqual([])
      const { 'a.txt': _, ...stays } = before
      expect(files(w)).toEqual({ ...stays, 'src/work.txt': expect.any(String) })
      expect(w.read('src/work.txt')).toBe('work\n')
      expect(lstatSync(join(w.dir, 'src/secret.txt')).mode & 0o777).toBe(0o600)
      const { commit } = await checkpoints.save('1', 'checkpoint: 1')
      const held = w.git('ls-tree', '-r', '--name-only', commit).split('\n')
      expect(held).toEqual(expect.arrayContaining(Object.keys(files(w))))
      expect(held).not.toContain('a.txt')
      expect(sh(w, 'git ls-files -v').match(/^S/m)).toBe(null)
      expect(words(w)).toMatch(/left out of the work tree while #1 ran.*not deleted.*src\//)
    })

    it('L: a failed attempt is undone to the last byte, and git hides nothing', async () => {
      const w = world()
      const checkpoints = await withEdits(w)
      const [before, status] = [files(w), w.git('status', '--porcelain')]
      sh(w, sparse)
      await checkpoints.keep(1)
      await checkpoints.restore()
      await checkpoints.ensure('1')
      expect([files(w), w.git('status', '--porcelain')]).toEqual([before, status])
      expect(sh(w, 'git ls-files -v').match(/^S/m)).toBe(null)
    })

    it('found by an attack: a gate that does it takes nothing away', async () => {
      const w = world()
      const checkpoints = await withEdits(w)
      w.write('src/work.txt', 'work\n')
      const { tree } = await checkpoints.keep(1, true)
      const before = files(w)
      sh(w, `git add src/work.txt; ${sparse}`)
      expect(await checkpoints.look(tree)).toEqual({ tree, stirred: [], lost: undefined })
      expect(files(w)).toEqual(before)
    })
  })

  it('G2: a folder that holds only empty ones keeps its permissions', async () => {
    const w = world()
    sh(w, 'mkdir -m 750 outer; mkdir -m 700 outer/empty')
    const checkpoints = await begun(w, strategy)
    sh(w, 'rm -r outer')
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect(sh(w, 'stat -c %a outer outer/empty')).toBe('750\n700\n')
  })
})
