// O8: a start that is killed while it makes the loop's own work tree never stands in the way of the next one.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { bundle } from '../../bundle.ts'
import { processIdentity } from '../../../src/adapters/process/table.ts'
import { filesOf, makeWorld, type World } from './world.ts'
import { makeTree } from './tree-driver.ts'

const worlds: World[] = []
afterEach(() => {
  for (const made of worlds.splice(0)) made.end()
})

interface Made {
  readonly w: World
  readonly tree: string
  /** Runs the driver with this program before every git, and says how often git was called. */
  kill(script: string, at?: number): number
  /** The next start, from the wreck on. */
  again(): Promise<string>
  reset(): void
}

function made(): Made {
  const w = makeWorld()
  worlds.push(w)
  w.write('openspec/changes/demo/tasks.md', '- [ ] one\n')
  const driver = join(w.root, 'driver.cjs')
  bundle(join(import.meta.dirname, 'tree-driver.ts'), driver)
  const bin = join(w.root, 'bin')
  const count = join(w.root, 'count')
  mkdirSync(bin)
  const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  const tree = join(w.root, 'repo-ralph-demo')
  const whole = { ...filesOf(w.dir), 'openspec/changes/demo/tasks.md': expect.any(String) as string }
  return {
    w,
    tree,
    kill(script, at = 0) {
      writeFileSync(count, '')
      const body = `#!/bin/sh\necho >> "${count}"; N=$(wc -l < "${count}"); AT=${at}; GIT="${real}"; TREE="${tree}"; ADMIN="${w.dir}/.git/worktrees/repo-ralph-demo"\n${script}\n`
      writeFileSync(join(bin, 'git'), body)
      chmodSync(join(bin, 'git'), 0o755)
      const env = { ...w.env, PATH: `${bin}:${w.env['PATH']}`, RALPH_TREE_DRIVER: '1' }
      spawnSync(process.execPath, [driver, w.dir], { env })
      return readFileSync(count, 'utf8').length
    },
    async again() {
      const { repository, left } = await makeTree(w.dir, w.env)
      expect(repository.worktree).toBe(tree)
      expect(filesOf(tree)).toEqual(whole)
      expect(w.git('worktree', 'list', '--porcelain').match(/^worktree /gm)).toHaveLength(2)
      expect(readdirSync(join(w.dir, '.git', 'worktrees'))).toHaveLength(1)
      expect(w.git('-C', tree, 'status', '--porcelain')).toBe('?? openspec/\n')
      return left
    },
    reset() {
      rmSync(tree, { recursive: true, force: true })
      rmSync(join(w.dir, '.git', 'worktrees'), { recursive: true, force: true })
      rmSync(join(w.dir, '.git', 'ralph'), { recursive: true, force: true })
    },
  }
}

describe('M2: killed while the work tree is made', () => {
  it('O8: before and after every git command', async () => {
    const m = made()
    const calls = m.kill('exec "$GIT" "$@"')
    expect(existsSync(m.tree)).toBe(true)
    expect(calls).toBeGreaterThan(3)
    for (let at = 1; at <= calls; at += 1) {
      for (const when of ['before', 'after']) {
        m.reset()
        const ran = when === 'before' ? 'true' : '"$GIT" "$@"'
        m.kill(`[ $N = $AT ] && { ${ran}; kill -9 $PPID; exit 1; }; exec "$GIT" "$@"`, at)
        await m.again()
      }
    }
  })

  /** What `git worktree add` has written when it dies, in its own order. */
  const steps = [
    'mkdir -p "$ADMIN"',
    'echo initializing > "$ADMIN/locked"; mkdir "$TREE"',
    'echo "$TREE/.git" > "$ADMIN/gitdir"',
    'echo "gitdir: $ADMIN" > "$TREE/.git"',
    'echo 0000000000000000000000000000000000000000 > "$ADMIN/HEAD"',
    'echo ../.. > "$ADMIN/commondir"',
    'echo one > "$TREE/a.txt"',
  ]
  it.each(steps.map((_, at) => [at + 1]))(
    'O8: git itself is killed within `worktree add`, after step %i',
    async (done) => {
      const m = made()
      const half = steps.slice(0, done).join('; ')
      m.kill(`case "$*" in *"worktree add"*) ${half}; kill -9 $PPID; exit 1;; esac; exec "$GIT" "$@"`)
      expect(existsSync(join(m.w.dir, '.git/worktrees/repo-ralph-demo'))).toBe(true)
      await m.again()
    },
  )

  it('O8: git is killed while it checks out', async () => {
    const m = made()
    m.w.write('.gitattributes', 'src/b.txt filter=dies\n')
    m.w.git('add', '.gitattributes')
    m.w.git('commit', '-qm', 'a filter')
    m.w.git('config', 'filter.dies.smudge', 'test -z "$RALPH_TREE_DRIVER" && cat || kill -9 0')
    m.kill('exec "$GIT" "$@"')
    expect(readFileSync(join(m.w.dir, '.git/worktrees/repo-ralph-demo/locked'), 'utf8')).toContain('init')
    m.w.git('config', '--unset', 'filter.dies.smudge')
    const { repository } = await makeTree(m.w.dir, m.w.env)
    expect(readFileSync(join(repository.worktree, 'src/b.txt'), 'utf8')).toBe('two\n')
  })

  it('O8: a file that somebody has put there meanwhile is kept, and it is said where', async () => {
    const m = made()
    m.kill(`case "$*" in *"worktree add"*) "$GIT" "$@"; kill -9 $PPID; exit 1;; esac; exec "$GIT" "$@"`)
    writeFileSync(join(m.tree, 'build.log'), 'mine\n')
    const left = await m.again()
    const aside = left.split('is now in ')[1] ?? ''
    expect(readFileSync(join(aside, 'build.log'), 'utf8')).toBe('mine\n')
  })

  it('O8: the start that moved it there is killed, too: the next one says where it is', async () => {
    const m = made()
    const killed = `case "$*" in *"worktree add"*) "$GIT" "$@"; kill -9 $PPID; exit 1;; esac; exec "$GIT" "$@"`
    m.kill(killed)
    writeFileSync(join(m.tree, 'build.log'), 'mine\n')
    m.kill(killed)
    expect(existsSync(join(m.tree, 'build.log'))).toBe(false)
    const aside = (await m.again()).split(/is now in ([^;]+)/)[1] ?? ''
    expect(readFileSync(join(aside, 'build.log'), 'utf8')).toBe('mine\n')
  })

  it('O8: one that somebody has gone on with is left alone, and the way out is named', async () => {
    const m = made()
    m.kill(`case "$*" in *"worktree add"*) "$GIT" "$@"; kill -9 $PPID; exit 1;; esac; exec "$GIT" "$@"`)
    m.w.git('-C', m.tree, 'switch', '-qc', 'mine')
    await expect(makeTree(m.w.dir, m.w.env)).rejects.toMatchObject({
      exitCode: 2,
      hint: expect.stringContaining(`git worktree remove ${m.tree}`) as string,
    })
    expect(m.w.git('-C', m.tree, 'branch', '--show-current')).toBe('mine\n')
  })

  it('O8: one that the user has made by hand at that place is refused', async () => {
    const m = made()
    m.w.git('worktree', 'add', '-q', '--detach', m.tree)
    await expect(makeTree(m.w.dir, m.w.env)).rejects.toMatchObject({ exitCode: 2 })
    expect(existsSync(join(m.tree, 'a.txt'))).toBe(true)
  })

  it('O8: one that another ralph is making just now is left to it', async () => {
    const m = made()
    m.kill('exec "$GIT" "$@"')
    const file = join(m.w.dir, '.git/ralph/checkpoints/demo/started-tree.json')
    const record = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
    // The record of a process that lives: this test's parent.
    const owner = { pid: process.ppid, pid_started: processIdentity(process.ppid) }
    writeFileSync(file, JSON.stringify({ ...record, ...owner }))
    await expect(makeTree(m.w.dir, m.w.env)).rejects.toMatchObject({ exitCode: 7 })
    expect(existsSync(join(m.tree, 'a.txt'))).toBe(true)
  })
})
