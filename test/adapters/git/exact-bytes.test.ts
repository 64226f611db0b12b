// O15: what git converts comes back byte for byte all the same, and no filter of an agent's has a say in it.
import { execFileSync } from 'node:child_process'
import { appendFileSync, readFileSync, rmSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Git } from '../../../src/adapters/git/git.ts'
import { worldOfTest as world, type Strategy, type World } from './world.ts'

/** One attempt that completes, if there is one, and one that fails. */
async function fail(
  w: World,
  strategy: Strategy,
  agent: { readonly completes?: () => void; readonly fails: () => void },
): Promise<readonly string[]> {
  const checkpoints = w.checkpoints(strategy, { env: w.env })
  await checkpoints.start('start')
  const warnings: string[] = []
  let n = 0
  if (agent.completes !== undefined) {
    await checkpoints.ensure('1')
    await w.note({ type: 'iteration.started', n: (n += 1) } as never)
    agent.completes()
    warnings.push(...(await checkpoints.keep(n)).warnings)
    await checkpoints.save('1', 'checkpoint: 1')
  }
  await checkpoints.ensure('2')
  await w.note({ type: 'iteration.started', n: (n += 1) } as never)
  agent.fails()
  warnings.push(...(await checkpoints.keep(n)).warnings)
  await checkpoints.restore()
  await checkpoints.ensure('2')
  return warnings
}

const bytes = (w: World, path: string): string => readFileSync(join(w.dir, path)).toString('latin1')
const isHeld = (w: World): boolean => w.git('for-each-ref', 'refs/ralph/demo/bytes') !== ''
const notebook = 'code\nOUTPUT 1\n'
const strips = (w: World): string => w.git('config', '--global', 'filter.strip.clean', 'grep -v OUTPUT')

describe.each<Strategy>(['branch', 'stash'])('O15: the very bytes (%s)', (strategy) => {
  it('M1: what is written while an attempt runs is kept whole with it, and the command brings it back', async () => {
    const w = world()
    strips(w)
    w.write('.git/info/attributes', '*.ipynb filter=strip\n')
    const beside = 'beside\nOUTPUT 2\n'
    const warnings = await fail(w, strategy, { fails: () => w.write('new book.ipynb', beside) })
    const [, command = ''] = /as the attempt left it: (.*)$/.exec(warnings.join('\n')) ?? []
    expect(w.git('ls-tree', '-r', '--name-only', 'refs/ralph/demo/attempts/1')).toContain('new book.ipynb')
    execFileSync('sh', ['-c', command], { cwd: w.dir, env: w.env })
    expect(bytes(w, 'new book.ipynb')).toBe(beside)
  })

  it("M1: the user's own filter, and an agent that turns it on for the user's file", async () => {
    const w = world()
    strips(w)
    w.write('user.ipynb', notebook)
    await fail(w, strategy, {
      completes: () => {
        w.write('.gitattributes', '*.ipynb filter=strip\n')
        appendFileSync(join(w.dir, 'user.ipynb'), 'more\n')
      },
      fails: () => w.write('user.ipynb', 'gone\n'),
    })
    expect(bytes(w, 'user.ipynb')).toBe(`${notebook}more\n`)
    expect(w.git('status', '--porcelain', '--', 'user.ipynb')).toBe(
      strategy === 'branch' ? '' : '?? user.ipynb\n',
    )
  })

  const later = new Date(Date.now() + 5000)
  const touched = (w: World): void => utimesSync(join(w.dir, 'm.c'), later, later)
  it.each([
    ['ident', '*.c ident\n', (w: World) => rmSync(join(w.dir, 'm.c'))],
    ['line ends', '*.c text eol=lf\n', touched],
    ['other line ends', '*.c text eol=crlf\n', (w: World) => w.write('m.c', 'gone\n')],
    ['a filter', '*.c filter=strip\n', touched],
  ])(
    'O15, found by an attacker: a story that lets git convert the user’s file by %s; a later attempt that touches it is undone',
    async (_, rule, touch) => {
      const own = '$Id: m.c 1.2 $\r\nOUTPUT\nx\n'
      const w = world()
      strips(w)
      w.write('m.c', own)
      // Git looks at a file that is as young as its index again.
      utimesSync(join(w.dir, 'm.c'), new Date(0), new Date(0))
      await fail(w, strategy, { completes: () => w.write('.gitattributes', rule), fails: () => touch(w) })
      expect(bytes(w, 'm.c')).toBe(own)
    },
  )

  it.each([
    ['an encoding that does not fit', '* working-tree-encoding=UTF-16\n'],
    ['no encoding at all', '* working-tree-encoding=nonsense\n'],
  ])(
    'O15, found by an attacker: an attempt that asks for %s is kept as it is and undone; complete, it is refused',
    async (_, rule) => {
      const w = world()
      w.write('src/b.txt', 'mine\n')
      const checkpoints = w.checkpoints(strategy, { env: w.env })
      await checkpoints.start('start')
      for (const n of [1, 2]) {
        await checkpoints.ensure('1')
        await w.note({ type: 'iteration.started', n } as never)
        w.write('.gitattributes', rule)
        w.write('src/b.txt', 'work\n')
        const { refused } = await checkpoints.keep(n, n === 2)
        expect(refused ?? '').toMatch(n === 2 ? /what .gitattributes says does not fit the files/ : /^$/)
        expect(w.git('show', `refs/ralph/demo/attempts/${n}:src/b.txt`)).toBe('work\n')
        await checkpoints.restore()
        expect(bytes(w, 'src/b.txt')).toBe('mine\n')
      }
    },
  )

  it.each([
    ['as long as before', 'work\n'],
    ['longer', 'work of the agent\n'],
    ['as it was', 'mine\n'],
  ])(
    'O15, found by an attacker: an attempt that turns on a required filter of the user’s which fails, on a file %s, is kept and undone; complete, it is refused',
    async (_, text) => {
      const w = world()
      w.git('config', '--global', 'filter.broken.clean', 'false')
      w.git('config', '--global', 'filter.broken.required', 'true')
      w.write('src/b.txt', 'mine\n')
      w.write('.gitignore', 'ignored\n')
      const checkpoints = w.checkpoints(strategy, { env: w.env })
      await checkpoints.start('start')
      for (const n of [1, 2]) {
        await checkpoints.ensure('1')
        await w.note({ type: 'iteration.started', n } as never)
        w.write('.gitattributes', '* filter=broken\n')
        w.write('src/b.txt', text)
        w.write('src/new.txt', 'new\n')
        w.write('.gitignore', 'hidden\n')
        w.write('hidden', 'by the agent\n')
        const { refused } = await checkpoints.keep(n, n === 2)
        expect(refused ?? '').toMatch(n === 2 ? /clean filter 'broken' failed/ : /^$/)
        const kept = (path: string): string => w.git('show', `refs/ralph/demo/attempts/${n}:${path}`)
        expect([kept('src/b.txt'), kept('src/new.txt'), kept('hidden')]).toEqual([
          text,
          'new\n',
          'by the agent\n',
        ])
        await checkpoints.restore()
        expect([bytes(w, 'src/b.txt'), bytes(w, '.gitignore')]).toEqual(['mine\n', 'ignored\n'])
        expect(w.git('status', '--porcelain', '--', 'src/new.txt', 'hidden', '.gitattributes')).toBe('')
      }
    },
  )

  it.each([
    ['its way in', 'false', 'cat', /clean filter 'broken' failed/],
    ['its way out', 'cat', 'false', /smudge filter broken failed/],
  ])(
    'O15, found by an attacker: a story that puts a file it has not touched under a required filter which fails on %s does not count',
    async (_, clean, smudge, why) => {
      const w = world()
      w.git('config', '--global', 'filter.broken.clean', clean)
      w.git('config', '--global', 'filter.broken.smudge', smudge)
      w.git('config', '--global', 'filter.broken.required', 'true')
      utimesSync(join(w.dir, 'a.txt'), new Date(0), new Date(0))
      const checkpoints = w.checkpoints(strategy, { env: w.env })
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      await w.note({ type: 'iteration.started', n: 1 } as never)
      w.write('.gitattributes', 'a.txt filter=broken\n')
      expect((await checkpoints.keep(1, true)).refused).toMatch(why)
      await checkpoints.restore()
      await checkpoints.ensure('1')
    },
  )

  it('G27: committed files whose line ends are not those that git would write: as they were; and none looks changed', async () => {
    const w = world()
    w.git('config', 'core.autocrlf', 'true')
    w.write('lf.txt', 'a\nb\n')
    w.write('crlf.txt', 'a\r\nb\r\n')
    w.write('mixed.txt', 'a\r\nb\n')
    execFileSync('sh', ['-c', 'git add -A; git commit -qm ends'], { cwd: w.dir, env: w.env, stdio: 'ignore' })
    w.write('src/b.txt', 'mine\n')
    const before = w.git('status', '--porcelain')
    const checkpoints = w.checkpoints(strategy, { env: w.env })
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    for (const path of ['lf.txt', 'crlf.txt', 'mixed.txt']) rmSync(join(w.dir, path))
    await checkpoints.keep(1)
    await checkpoints.restore()
    await checkpoints.ensure('1')
    const ends = (): string[] => ['lf.txt', 'crlf.txt'].map((path) => bytes(w, path))
    expect(ends()).toEqual(['a\nb\n', 'a\r\nb\r\n'])
    await checkpoints.finish('cleanup')
    expect(ends()).toEqual(['a\nb\n', 'a\r\nb\r\n'])
    expect(w.git('status', '--porcelain')).toBe(before)
  })

  it('M1: what the filter hides from git comes back too', async () => {
    const w = world()
    strips(w)
    w.write('.gitattributes', '*.ipynb filter=strip\n')
    w.write('user.ipynb', notebook)
    await fail(w, strategy, { fails: () => w.write('user.ipynb', 'code\nOUTPUT 2\n') })
    expect(bytes(w, 'user.ipynb')).toBe(notebook)
  })

  it('M1: the bytes outlast a gc', async () => {
    const w = world()
    strips(w)
    w.write('.gitattributes', '*.ipynb filter=strip\n')
    w.write('user.ipynb', notebook)
    await fail(w, strategy, {
      fails: () => {
        w.write('user.ipynb', 'gone\n')
        w.git('reflog', 'expire', '--expire=now', '--all')
        w.git('gc', '-q', '--prune=now')
      },
    })
    expect(bytes(w, 'user.ipynb')).toBe(notebook)
  })

  it('M1: a filter that an agent installs for all repositories is not used, and it is said once', async () => {
    const w = world()
    w.write('user.ipynb', notebook)
    const warnings = await fail(w, strategy, {
      completes: () => {
        w.git('config', '--global', 'filter.strip.clean', 'false')
        w.git('config', '--global', 'filter.strip.required', 'true')
        w.write('.gitattributes', '*.ipynb filter=strip\n')
        appendFileSync(join(w.dir, 'user.ipynb'), 'more\n')
      },
      fails: () => w.write('user.ipynb', 'gone\n'),
    })
    expect(bytes(w, 'user.ipynb')).toBe(`${notebook}more\n`)
    expect(w.git('show', 'refs/ralph/demo/attempts/1:user.ipynb')).toBe(`${notebook}more\n`)
    expect(warnings.join('\n').match(/filter\.strip\.clean/g)).toHaveLength(1)
    expect(w.git('config', '--global', 'filter.strip.clean')).toBe('false\n')
  })

  it('M1: a filter of the user’s that an agent changes stays the user’s for ralph', async () => {
    const w = world()
    w.git('config', '--global', 'filter.caps.clean', 'tr a-z A-Z')
    w.git('config', '--global', 'filter.caps.smudge', 'tr A-Z a-z')
    w.write('.gitattributes', '*.caps filter=caps\n')
    w.write('user.caps', 'mine\n')
    await fail(w, strategy, {
      completes: () => {
        w.git('config', '--global', 'filter.caps.clean', 'echo nothing')
        w.write('agent.caps', 'work\n')
      },
      fails: () => w.write('user.caps', 'gone\n'),
    })
    expect(bytes(w, 'user.caps')).toBe('mine\n')
    expect(w.git('show', 'refs/ralph/demo/attempts/1:agent.caps')).toBe('WORK\n')
  })

  it('O15: a filter that gives back what it took costs no second copy', async () => {
    const w = world()
    w.git('config', 'filter.caps.clean', 'tr a-z A-Z')
    w.git('config', 'filter.caps.smudge', 'tr A-Z a-z')
    w.write('.gitattributes', '*.caps filter=caps\n')
    w.write('user.caps', 'mine\n')
    await fail(w, strategy, { fails: () => w.write('user.caps', 'gone\n') })
    expect(bytes(w, 'user.caps')).toBe('mine\n')
    expect(isHeld(w)).toBe(false)
  })

  it.each([
    ['LF', 'one\ntwo\n'],
    ['CRLF', 'one\r\ntwo\r\n'],
    ['mixed', 'one\r\ntwo\nthree\r\n'],
  ])('L: autocrlf: an uncommitted file with %s line ends comes back with them', async (_ends, text) => {
    for (const agent of ['gone\n', 'one\ntwo\n', 'one\r\ntwo\r\n']) {
      const w = world()
      w.git('config', 'core.autocrlf', 'true')
      w.write('new.txt', text)
      w.write('a.txt', text)
      await fail(w, strategy, {
        fails: () => {
          w.write('new.txt', agent)
          w.write('a.txt', agent)
        },
      })
      expect([bytes(w, 'new.txt'), bytes(w, 'a.txt')]).toEqual([text, text])
    }
  })

  it('O15: ident, encodings, and names that cannot be listed', async () => {
    const w = world()
    w.write('.gitattributes', '*.id ident\n*.utf16 working-tree-encoding=UTF-16\n*.strip filter=strip\n')
    strips(w)
    const utf16 = Buffer.from('\ufeffhello\n', 'utf16le')
    w.write('x.id', '$Id: old text of mine $\n')
    w.write('x.utf16', utf16)
    const odd = Buffer.concat([Buffer.from(`${w.dir}/new\nline`), Buffer.from([0xe9]), Buffer.from('.strip')])
    execFileSync('sh', ['-c', 'printf "code\\nOUTPUT\\n" > "$(printf "new\\nline\\351.strip")"'], {
      cwd: w.dir,
    })
    await fail(w, strategy, {
      fails: () => {
        w.write('x.id', 'gone\n')
        w.write('x.utf16', Buffer.from('\ufeffgone\n', 'utf16le'))
        appendFileSync(odd, 'OUTPUT 2\n')
      },
    })
    expect(bytes(w, 'x.id')).toBe('$Id: old text of mine $\n')
    expect(readFileSync(join(w.dir, 'x.utf16'))).toEqual(utf16)
    expect(readFileSync(odd, 'utf8')).toBe('code\nOUTPUT\n')
  })

  it('O15: without conversions git is asked nothing about them', async () => {
    const w = world()
    w.write('mine.txt', 'mine\n')
    const asked: string[] = []
    const spied: Git = {
      ...w.gitPort,
      run: (args, options) => {
        asked.push(args.includes('--show-scope') ? 'scope' : (args[0] ?? ''))
        return w.gitPort.run(args, options)
      },
    }
    const checkpoints = w.checkpoints(strategy, { env: w.env, git: spied })
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('mine.txt', 'gone\n')
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect(bytes(w, 'mine.txt')).toBe('mine\n')
    expect(asked.filter((name) => ['check-attr', 'hash-object', 'scope'].includes(name))).toEqual([])
  })
})
