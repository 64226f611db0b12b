// What the git of an agent tells of itself, and what it must not change for the agent.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { undoRefs } from '../../../src/adapters/git/refs/undo-refs.ts'
import { hasWritten, readLedger } from '../../../src/adapters/git/refs/ledger.ts'
import { openStore, type Store } from '../../../src/adapters/git/store.ts'
import { forgetWatches, watch } from '../../../src/adapters/git/refs/watch.ts'
import { blankMemory } from '../../../src/core/git-memory.ts'
import type { Ledger } from '../../../src/core/ownership.ts'
import { run } from '../../shell.ts'
import { makeWorld, type World } from './world.ts'

const worlds: World[] = []
afterEach(() => {
  for (const world of worlds.splice(0)) world.end()
})

async function watched(env: NodeJS.ProcessEnv = {}): Promise<{
  w: World
  agent: (...args: string[]) => string
  ledger: (n?: number) => Promise<Ledger>
  store: Store
  env: NodeJS.ProcessEnv
}> {
  const w = makeWorld()
  worlds.push(w)
  const store = openStore({
    git: w.gitPort,
    change: 'demo',
    writeAhead: () => Promise.resolve(),
    memory: () => blankMemory,
    protectedPaths: [],
    clock: { now: () => 0 },
    env,
  })
  const own = { ...w.env, ...env, ...(await watch(store, 'agent', 1)) }
  const agent = (...args: string[]): string => run('git', args, { cwd: w.dir, env: own })
  return { w, agent, ledger: (n = 1) => readLedger(store, n), env: own, store }
}

function hook(w: World, folder: string, name: string, script: string): void {
  mkdirSync(join(w.dir, folder), { recursive: true })
  writeFileSync(join(w.dir, folder, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(w.dir, folder, name), 0o755)
}

describe('the ledger', () => {
  it('O13: has every ref that the agent writes, with what it found there, and none that the user writes', async () => {
    const { w, agent, ledger } = await watched()
    const first = w.git('rev-parse', 'HEAD').trim()
    agent('commit', '-q', '--allow-empty', '-m', 'agent')
    const second = agent('rev-parse', 'HEAD').trim()
    w.git('branch', 'mine')
    agent('branch', '-f', 'mine', first)
    agent('tag', 'v1')
    agent('tag', '-d', 'v1')
    agent('branch', '-D', 'mine')
    const { writes } = await ledger()
    const told = writes.filter(({ ref }) => ref !== 'HEAD').map(({ ref, from, to }) => [ref, from, to])
    expect(told.filter(([ref]) => ref === 'refs/heads/main')).toEqual([['refs/heads/main', first, second]])
    expect(told.filter(([ref]) => ref === 'refs/heads/mine').slice(0, 2)).toEqual([
      ['refs/heads/mine', second, first],
      ['refs/heads/mine', first, undefined],
    ])
    expect(told.filter(([ref]) => ref === 'refs/tags/v1').slice(0, 2)).toEqual([
      ['refs/tags/v1', undefined, second],
      ['refs/tags/v1', second, undefined],
    ])
    w.git('commit', '-q', '--allow-empty', '-m', 'user')
    expect((await ledger()).writes).toEqual(writes)
  })

  it('Q1: a ref of the merge queue is told before git shows it, also one that is deleted', async () => {
    const { w, agent } = await watched()
    const ref = 'refs/ralph-landed/main'
    // The repository's own hook is asked once ralph's was, and before git writes.
    const seen = join(w.dir, '.git', 'seen')
    const copy = `[ "$1" = prepared ] && cp .git/ralph/checkpoints/demo/watch/agent-1/ledger ${seen}`
    hook(w, '.git/hooks', 'reference-transaction', `${copy}; exit 0`)
    const head = agent('rev-parse', 'HEAD').trim()
    for (const [words, to] of [
      [[ref, head], head],
      [['-d', ref], undefined],
    ] as const) {
      agent('update-ref', ...words)
      const ledger = readFileSync(seen, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('will '))
      expect(ledger.at(-1)).toMatch(new RegExp(`${to ?? '0{40}'} ${ref}$`))
      expect(hasWritten(w.gitPort, 'demo', ref, to)).toBe(true)
    }
    expect(hasWritten(w.gitPort, 'demo', ref, 'f'.repeat(40))).toBe(false)
    expect(hasWritten(w.gitPort, 'demo', 'refs/ralph-landed/other', head)).toBe(false)
  })

  it('packing refs is neither a write nor a deletion', async () => {
    const { w, agent, ledger } = await watched()
    w.git('branch', 'mine')
    agent('gc', '-q')
    agent('pack-refs', '--all')
    expect((await ledger()).writes).toEqual([])
    agent('branch', '-D', 'mine')
    expect((await ledger()).writes[0]).toMatchObject({ ref: 'refs/heads/mine', to: undefined })
  })

  it('has the switches of HEAD, the commands in this repository and the work trees made; nothing of other repositories', async () => {
    const { w, agent, ledger } = await watched()
    agent('checkout', '-q', '-b', 'topic')
    agent('-c', 'a.b=c', '-C', 'src', 'checkout', '-q', '.')
    agent('worktree', 'add', '-q', '../beside', '-b', 'beside')
    agent('init', '-q', 'nested')
    agent('-C', 'nested', 'commit', '-q', '--allow-empty', '-m', 'n')
    const { switches, commands, trees, writes } = await ledger()
    expect(switches).toEqual([{ by: 'agent', head: 'refs/heads/topic' }])
    const asked = commands.filter(({ worktree }) => worktree === w.dir).map(({ argv }) => argv)
    expect(asked).toContainEqual(['checkout', '-q', '-b', 'topic'])
    expect(asked).toContainEqual(['checkout', '-q', '.'])
    expect(asked).not.toContainEqual(['commit', '-q', '--allow-empty', '-m', 'n'])
    expect(trees).toEqual(['beside'])
    expect([...new Set(writes.map(({ ref }) => ref))]).toEqual(['refs/heads/topic', 'refs/heads/beside'])
  })

  it('O13: another name for a branch is a write to it, and no switch of HEAD (as git 2.46 tells it)', async () => {
    const { w, ledger } = await watched()
    const none = '0'.repeat(40)
    const lines = [
      `wrote . ${none} ref:refs/heads/main refs/heads/also`,
      `wrote . ref:refs/heads/main ${none} refs/heads/also`,
      `wrote . ref:refs/heads/main ref:refs/heads/topic HEAD`,
    ]
    writeFileSync(join(w.dir, '.git/ralph/checkpoints/demo/watch/agent-1/ledger'), `${lines.join('\n')}\n`)
    const { writes, switches } = await ledger()
    const write = { by: 'agent', ref: 'refs/heads/also', from: undefined, to: undefined }
    expect(writes).toEqual([write, write])
    expect(switches).toEqual([{ by: 'agent', head: 'refs/heads/topic' }])
  })

  it('O17: names are bytes', async () => {
    const { w, ledger, env } = await watched()
    execFileSync('sh', ['-c', String.raw`git branch "$(printf 'caf\351')"`], { cwd: w.dir, env })
    const { writes, commands } = await ledger()
    expect(writes.map(({ ref }) => ref)).toEqual(['refs/heads/caf\udce9'])
    expect(commands.map(({ argv }) => argv)).toEqual([['branch', 'caf\udce9']])
  })

  it('is readable for its owner alone', async () => {
    const { w } = await watched()
    const folder = join(w.dir, '.git/ralph/checkpoints/demo/watch/agent-1')
    expect(
      [folder, join(folder, 'ledger'), join(folder, 'trace')].map((path) => statSync(path).mode & 0o077),
    ).toEqual([0, 0, 0])
  })
})

describe('the hooks that tell it', () => {
  it('serve the next attempt under its own name, and are made anew where somebody wrote to them', async () => {
    const { w, store, ledger } = await watched()
    const at = (n: number): string => join(w.dir, '.git/ralph/checkpoints/demo/watch', `agent-${n}`, 'hooks')
    const [first, script] = ['ino', 'text'].map((what) => seen(at(1), what))
    await forgetWatches(store)
    expect(existsSync(at(1))).toBe(false)
    const env = { ...w.env, ...(await watch(store, 'agent', 2)) }
    expect(seen(at(2), 'ino')).toBe(first)
    const agent = (...args: string[]): string => run('git', args, { cwd: w.dir, env })
    agent('branch', 'told')
    expect((await ledger(2)).writes.map(({ ref }) => ref)).toContain('refs/heads/told')
    expect((await ledger(1)).writes).toEqual([])

    const spoil = [
      (): void => writeFileSync(join(at(2), 'post-commit'), 'exit 1\n'),
      (): void => chmodSync(join(at(3), 'post-commit'), 0o600),
      (): void => writeFileSync(join(at(4), 'pre-receive'), 'exit 1\n'),
      (): void => rmSync(join(at(5), 'post-commit')),
      (): void => chmodSync(at(6), 0o755),
    ]
    for (const [which, spoiled] of spoil.entries()) {
      spoiled()
      await forgetWatches(store)
      await watch(store, 'agent', which + 3)
      expect(seen(at(which + 3), 'text')).toBe(script)
    }
  })

  it.each([
    ['a link', symlinkSync],
    ['a second name', linkSync],
  ])(
    'are made anew where %s to a file of the user stands in the place of what they call',
    async (_, made) => {
      const { w, store } = await watched()
      const shim = (n: number): string =>
        join(w.dir, '.git/ralph/checkpoints/demo/watch', `agent-${n}`, 'shim.sh')
      w.write('mine.txt', 'mine\n')
      rmSync(shim(1))
      made(join(w.dir, 'mine.txt'), shim(1))
      await forgetWatches(store)
      await watch(store, 'agent', 2)
      expect(readFileSync(join(w.dir, 'mine.txt'), 'utf8')).toBe('mine\n')
      expect(readFileSync(shim(2), 'utf8')).toContain('Made by ralph')
    },
  )

  function seen(hooks: string, what: string): string {
    const files = readdirSync(hooks).map((name) => join(hooks, name))
    const of = (file: string): string =>
      what === 'ino'
        ? String(statSync(file).ino)
        : `${statSync(file).mode} ${file.replace(/.*\//, '')} ${readFileSync(file, 'utf8')}`
    return [statSync(hooks).mode, ...files.map(of)].join('\n')
  }
})

describe('the hooks of the repository go on working for the agent', () => {
  it('those of its git directory, also one made meanwhile, with arguments, input and exit code', async () => {
    const { w, agent } = await watched()
    hook(w, '.git/hooks', 'commit-msg', 'echo "$(cat "$1"), signed" > "$1"')
    agent('commit', '-q', '--allow-empty', '-m', 'one')
    expect(w.git('log', '-1', '--format=%s').trim()).toBe('one, signed')
    hook(w, '.git/hooks', 'pre-push', 'cat > pushed')
    w.git('init', '-q', '--bare', '../away')
    agent('push', '-q', '../away', 'main')
    expect(w.read('pushed')).toMatch(/^refs\/heads\/main [0-9a-f]{40} refs\/heads\/main 0{40}\n$/)
    hook(w, '.git/hooks', 'pre-commit', 'echo no >&2; exit 3')
    expect(() => agent('commit', '-q', '--allow-empty', '-m', 'two')).toThrow('no')
  })

  it('those of a core.hooksPath of its own, set before or during the attempt, in its environment too', async () => {
    const { w, agent } = await watched()
    hook(w, '.husky', 'post-commit', 'echo "$0" > ran')
    agent('config', 'core.hooksPath', '.husky')
    agent('commit', '-q', '--allow-empty', '-m', 'one')
    expect(w.read('ran')).toBe('.husky/post-commit\n')
    const other = await watched({ GIT_CONFIG_PARAMETERS: "'core.hooksPath'='.own'" })
    hook(other.w, '.own', 'post-commit', 'echo yes > ran')
    other.agent('commit', '-q', '--allow-empty', '-m', 'one')
    expect(other.w.read('ran')).toBe('yes\n')
    expect((await other.ledger()).writes).not.toEqual([])
  })

  it('its own reference-transaction hook hears everything and may refuse', async () => {
    const { w, agent, ledger } = await watched()
    hook(
      w,
      '.git/hooks',
      'reference-transaction',
      'cat >> heard; echo "$1" >> heard; ! grep -q refused heard',
    )
    agent('branch', 'one')
    const head = w.git('rev-parse', 'main').trim()
    const line = `${'0'.repeat(40)} ${head} refs/heads/one\n`
    expect(w.read('heard')).toBe(`${line}prepared\n${line}committed\n`)
    expect(() => agent('branch', 'refused')).toThrow('aborted by hook')
    expect((await ledger()).writes.map(({ ref }) => ref)).toEqual(['refs/heads/one'])
  })

  it('those of a nested repository are its own', async () => {
    const { w, agent } = await watched()
    hook(w, '.git/hooks', 'post-commit', 'echo outer > ../ran; echo outer > ran')
    agent('init', '-q', '--template=', 'nested')
    hook(w, 'nested/.git/hooks', 'post-commit', 'echo inner > ../ran')
    agent('-C', 'nested', 'commit', '-q', '--allow-empty', '-m', 'n')
    expect(w.read('ran')).toBe('inner\n')
  })

  it('an agent whose watch was removed commits all the same', async () => {
    const { w, agent } = await watched()
    execFileSync('rm', ['-r', join(w.dir, '.git/ralph')])
    agent('commit', '-q', '--allow-empty', '-m', 'one')
    expect(w.git('log', '-1', '--format=%s').trim()).toBe('one')
  })

  it("the user's own trace stays the user's", async () => {
    const w = makeWorld()
    worlds.push(w)
    const trace = join(w.root, 'trace')
    const { agent, ledger } = await watched({ GIT_TRACE2_EVENT: trace })
    agent('branch', 'one')
    expect(readFileSync(trace, 'utf8')).toContain('"argv":["git","branch","one"]')
    expect(await ledger()).toMatchObject({ commands: [], writes: [{ ref: 'refs/heads/one' }] })
  })
})

describe('what an agent did to refs is undone', () => {
  it('O12: but for what somebody has moved since it was looked at, which stays; the loop’s own branch must be as it was seen', async () => {
    const w = makeWorld()
    worlds.push(w)
    const [first, second, third] = ['first', 'second', 'third'].map((word) => {
      w.git('commit', '-q', '--allow-empty', '-m', word)
      return w.git('rev-parse', 'HEAD').trim()
    }) as [string, string, string]
    for (const name of ['moved', 'moved-again', 'made', 'made-again', 'deleted-and-made', 'ralph/demo'])
      w.git('branch', name, second)
    const seen = {
      moved: ['moved', 'moved-again'].map((name) => ({
        name: `refs/heads/${name}`,
        from: first,
        to: second,
      })),
      created: ['made', 'made-again'].map((name) => ({ name: `refs/heads/${name}`, to: second })),
      deleted: ['deleted', 'deleted-and-made'].map((name) => ({ name: `refs/heads/${name}`, from: first })),
    }
    for (const name of ['moved-again', 'made-again']) w.git('update-ref', `refs/heads/${name}`, third)
    const undone = await undoRefs(w.gitPort, seen, 'refs/heads/ralph/demo')
    const names = [...undone.moved, ...undone.created, ...undone.deleted].map(({ name }) => name)
    expect(names).toEqual(['refs/heads/moved', 'refs/heads/made', 'refs/heads/deleted'])
    const at = (name: string): string =>
      w.git('for-each-ref', '--format=%(objectname)', `refs/heads/${name}`).trim()
    expect(['moved', 'moved-again', 'made', 'made-again', 'deleted', 'deleted-and-made'].map(at)).toEqual([
      first,
      third,
      '',
      third,
      first,
      second,
    ])
    const own = [{ name: 'refs/heads/ralph/demo', from: second, to: first }]
    await expect(
      undoRefs(w.gitPort, { moved: own, created: [], deleted: [] }, 'refs/heads/ralph/demo'),
    ).rejects.toThrow('ralph/demo')
  })
})
