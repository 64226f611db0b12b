import * as fc from 'fast-check'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { copyIndex } from '../../../src/adapters/git/formats/index-file.ts'
import { writePlainTree } from '../../../src/adapters/git/formats/plain-tree.ts'
import { scanTree } from '../../../src/adapters/git/tree/scan.ts'
import { writeTree } from '../../../src/adapters/git/tree/tree.ts'
import { makeWorld, worldOfTest, type World } from './world.ts'

const privateIndex = (w: World): string => join(w.root, 'private-index')

/** The index of the repository, copied, and what differs from it. */
async function begin(w: World): Promise<{ present: string[]; deleted: string[] }> {
  await copyIndex(w.gitPort, join(w.dir, '.git', 'index'), privateIndex(w))
  const scan = await scanTree(w.gitPort, { index: privateIndex(w) })
  return { present: [...scan.changed, ...scan.untracked], deleted: [...scan.deleted] }
}

/** As git does it, in an index of its own. */
async function byGit(w: World): Promise<string> {
  const index = join(w.root, 'index-of-git')
  await copyIndex(w.gitPort, join(w.dir, '.git', 'index'), index)
  await w.gitPort.run(['add', '-A'], { index })
  return await w.gitPort.line(['write-tree'], { index })
}

describe('O18: an object that a power cut left empty, torn or wrong under the name of what is saved', () => {
  const files: Record<string, (w: World, file: string) => void> = {
    empty: (_, file) => writeFileSync(file, ''),
    torn: (_, file) => writeFileSync(file, readFileSync(file).subarray(0, 12)),
    wrong: (w, file) => {
      const other = w.git('rev-parse', 'HEAD:a.txt').trim()
      writeFileSync(file, readFileSync(join(w.dir, '.git/objects', other.slice(0, 2), other.slice(2))))
    },
  }
  const ways: Record<string, (w: World) => void> = {
    'by ralph': () => undefined,
    'by git': (w) => w.write('.gitattributes', '*.x text\n'),
    'staged by the user': (w) => w.git('add', 'mine', 'link'),
  }
  const cases = Object.keys(files).flatMap((file) => Object.keys(ways).map((way) => [file, way] as const))
  test.each(cases)('%s, %s: it is written anew', async (file, way) => {
    const w = worldOfTest()
    const text = `my only copy\n${'x y z '.repeat(20)}\n`
    w.write('mine', text)
    symlinkSync('my only target', join(w.dir, 'link'))
    ways[way]?.(w)
    const index = privateIndex(w)
    await copyIndex(w.gitPort, join(w.dir, '.git', 'index'), index)
    const scan = await scanTree(w.gitPort, { index })
    for (const hash of [
      w.git('hash-object', '-w', 'mine').trim(),
      execFileSync('git', ['hash-object', '-w', '--stdin'], {
        cwd: w.dir,
        env: w.env,
        input: 'my only target',
      })
        .toString()
        .trim(),
    ]) {
      const place = join(w.dir, '.git/objects', hash.slice(0, 2), hash.slice(2))
      chmodSync(place, 0o644)
      files[file]?.(w, place)
    }
    const { tree } = await writeTree(w.gitPort, index, scan, () => false)
    expect([w.git('show', `${tree}:mine`), w.git('show', `${tree}:link`)]).toEqual([text, 'my only target'])
    expect(w.git('fsck', '--full', '--no-dangling')).toBe('')
  })
})

const steps = fc.array(
  fc.record({
    path: fc.constantFrom(
      'a.txt',
      'src/b.txt',
      'src-0',
      'src.x/y',
      'src/c/d/e',
      'src/c-d',
      'src/c.d',
      'A',
      'run.sh',
      'src/c/d/f',
    ),
    what: fc.constantFrom('write', 'write', 'write', 'run', 'remove'),
    text: fc.string({ maxLength: 12 }),
  }),
  { minLength: 1, maxLength: 8 },
)

test('a private index that is a second name of another one is never written into, nor is what a kill left of that', async () => {
  const w = worldOfTest()
  await begin(w)
  const [checkpoint, attempt] = [privateIndex(w), join(w.root, 'attempt-index')]
  const before = readFileSync(checkpoint)
  const differing = { present: ['a.txt'], deleted: [] }
  for (const left of ['', `${attempt}.link`]) {
    if (left !== '') linkSync(checkpoint, left)
    expect(await copyIndex(w.gitPort, checkpoint, attempt)).toBe(true)
    expect(statSync(attempt).ino).toBe(statSync(checkpoint).ino)
    // Where they are one already.
    expect(await copyIndex(w.gitPort, checkpoint, attempt)).toBe(true)
    expect(existsSync(`${attempt}.link`)).toBe(false)
    w.write('a.txt', `changed ${left}\n`)
    expect(await writePlainTree(w.gitPort, attempt, differing)).toMatch(/^[0-9a-f]{40}$/)
    await w.gitPort.run(['update-index', '--force-remove', 'a.txt'], { index: attempt })
    expect(readFileSync(checkpoint).equals(before)).toBe(true)
  }
  // The repository's own is another's to write into.
  await copyIndex(w.gitPort, join(w.dir, '.git', 'index'), attempt)
  expect(statSync(attempt).nlink).toBe(1)
})

describe('a tree that is written without git', () => {
  test('is the tree that git writes, and its index is one that git takes for its own, again and again', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 3 }), async (rounds) => {
        const w = makeWorld()
        try {
          for (const round of rounds) {
            for (const { path, what, text } of round) {
              if (what === 'remove') rmSync(join(w.dir, path), { force: true })
              else w.write(path, text)
              if (what === 'run') chmodSync(join(w.dir, path), 0o755)
            }
            const asked = await begin(w)
            if (asked.present.length + asked.deleted.length === 0) continue
            const expected = await byGit(w)
            const index = privateIndex(w)
            expect(await writePlainTree(w.gitPort, index, asked)).toBe(expected)
            expect(await w.gitPort.line(['write-tree'], { index })).toBe(expected)
            const status = await scanTree(w.gitPort, { index })
            expect([status.changed, status.deleted, status.untracked]).toEqual([[], [], []])
            const listed = await w.gitPort.line(['ls-tree', '-r', expected])
            expect((await w.gitPort.line(['ls-files', '-s'], { index })).replaceAll(' 0\t', '\t')).toBe(
              listed.replaceAll(/^(\d+) blob /gm, '$1 '),
            )
            // What comes next begins where this one ended.
            copyFileSync(index, join(w.dir, '.git', 'index'))
          }
          w.git('fsck', '--strict')
        } finally {
          w.end()
        }
      }),
      { numRuns: 15 },
    )
  })

  test('of a large index, with folders that nobody touched', async () => {
    const w = worldOfTest()
    const blob = w.git('rev-parse', 'HEAD:a.txt').trim()
    const lines = Array.from({ length: 20_000 }, (_, n) => `100644 ${blob}\td${n % 90}/s${n % 3}/f${n}`)
    const index = privateIndex(w)
    await copyIndex(w.gitPort, join(w.dir, '.git', 'index'), index)
    await w.gitPort.run(['update-index', '--index-info'], { index, input: `${lines.join('\n')}\n` })
    await w.gitPort.run(['write-tree'], { index })
    const ofGit = join(w.root, 'index-of-git')
    for (const [present, deleted] of [
      [['a.txt', 'd1/s1/f1', 'd7/new', 'z/y/x'], ['d2/s2/f2']],
      [['d89/s2/f89'], ['d7/new', 'z/y/x', 'd1/s1/f1']],
    ] as const) {
      for (const path of present) w.write(path, `text of ${path}\n`)
      for (const path of deleted) rmSync(join(w.dir, path), { force: true })
      await copyIndex(w.gitPort, index, ofGit)
      const paths = [...present, ...deleted]
      await w.gitPort.run(['update-index', '--add', '--remove', '--', ...paths], { index: ofGit })
      const expected = await w.gitPort.line(['write-tree'], { index: ofGit })
      expect(await writePlainTree(w.gitPort, index, { present, deleted })).toBe(expected)
      const listed = (file: string): Promise<string> => w.gitPort.line(['ls-files', '-s'], { index: file })
      expect(await listed(index)).toBe(await listed(ofGit))
      // It knows its trees: none has to be made again.
      expect(await w.gitPort.line(['write-tree'], { index })).toBe(expected)
    }
    // Beside each other: none gets what another has read.
    const copies = [0, 1, 2, 3].map((n) => join(w.root, `copy-${n}`))
    for (const copy of copies) await copyIndex(w.gitPort, index, copy)
    const trees = await Promise.all(
      copies.map(async (copy, n) => {
        w.write(`d${n}/beside`, `${n}\n`)
        return await writePlainTree(w.gitPort, copy, { present: [`d${n}/beside`], deleted: [] })
      }),
    )
    for (const [n, copy] of copies.entries()) {
      await copyIndex(w.gitPort, index, ofGit)
      await w.gitPort.run(['update-index', '--add', '--', `d${n}/beside`], { index: ofGit })
      expect(trees[n]).toBe(await w.gitPort.line(['write-tree'], { index: ofGit }))
      expect(await w.gitPort.line(['write-tree'], { index: copy })).toBe(trees[n])
    }
    for (const path of ['d3', 'd4/s1/f4/x'])
      expect(await writePlainTree(w.gitPort, index, { present: [path], deleted: [] })).toBeUndefined()
  })

  test('an edit of the same size and time as what its index holds is seen', async () => {
    const w = worldOfTest()
    w.write('a.txt', 'two\n')
    const asked = await begin(w)
    await writePlainTree(w.gitPort, privateIndex(w), asked)
    const { atime, mtime } = statSync(join(w.dir, 'a.txt'))
    w.write('a.txt', 'six\n')
    utimesSync(join(w.dir, 'a.txt'), atime, mtime)
    expect((await scanTree(w.gitPort, { index: privateIndex(w) })).changed).toEqual(['a.txt'])
  })

  test('an entry that was in doubt before stays in doubt when the index gets younger', async () => {
    const w = worldOfTest()
    w.write('a.txt', 'two\n')
    // Longer ago than any second that is in doubt, but as young as its index, and with other bytes than that has.
    const then = new Date(Date.now() - 60_000)
    utimesSync(join(w.dir, 'a.txt'), then, then)
    w.user('add', 'a.txt')
    const index = join(w.dir, '.git', 'index')
    utimesSync(index, then, then)
    writeFileSync(join(w.dir, 'a.txt'), 'six\n')
    utimesSync(join(w.dir, 'a.txt'), then, then)
    // As a file system would have it that keeps whole seconds: git goes by size and time alone.
    w.user('config', 'core.trustctime', 'false')
    w.write('src/b.txt', 'other\n')
    await copyIndex(w.gitPort, index, privateIndex(w))
    const asked = { present: ['src/b.txt'], deleted: [] }
    expect(await writePlainTree(w.gitPort, privateIndex(w), asked)).toBeDefined()
    const entries = await w.gitPort.list(['ls-files', '-z', '--debug', 'a.txt'], { index: privateIndex(w) })
    expect(entries.join('')).toContain('size: 0')
    expect((await scanTree(w.gitPort, { index: privateIndex(w) })).changed).toEqual(['a.txt'])
  })

  const refused: Record<string, (w: World) => void> = {
    'attributes in the work tree': (w) => w.write('.gitattributes', '* text=auto\n'),
    'attributes of a folder above': (w) => w.write('src/.gitattributes', '*.txt ident\n'),
    'attributes that only the index has': (w) => {
      w.write('src/.gitattributes', '*.txt ident\n')
      w.user('add', '-A')
      rmSync(join(w.dir, 'src/.gitattributes'))
    },
    'attributes of the repository': (w) => w.write('.git/info/attributes', '* filter=x\n'),
    'attributes of the user': (w) => {
      w.write('attributes', '* filter=x\n')
      w.user('config', '--global', 'core.attributesFile', join(w.dir, 'attributes'))
    },
    'line ends that git changes': (w) => w.user('config', 'core.autocrlf', 'input'),
    'modes that git does not look at': (w) => w.user('config', 'core.fileMode', 'false'),
    'names without case': (w) => w.user('config', 'core.ignoreCase', 'true'),
    'an index of another version': (w) => w.user('update-index', '--index-version', '4'),
    'an index with more in it': (w) => w.user('update-index', '--force-untracked-cache'),
    'an index without a checksum': (w) => {
      const bytes = readFileSync(join(w.dir, '.git', 'index'))
      writeFileSync(join(w.dir, '.git', 'index'), bytes.fill(0, bytes.length - 20))
    },
    'a file that will be added': (w) => {
      w.write('later', 'x')
      w.user('add', '-N', 'later')
    },
    'a file that is assumed to be unchanged': (w) => w.user('update-index', '--assume-unchanged', 'run.sh'),
    'a sparse checkout': (w) => w.user('config', 'core.sparseCheckout', 'true'),
    'a conflict': (w) => {
      const blob = w.user('hash-object', '-w', 'run.sh').trim()
      const line = (stage: number): string => `100644 ${blob} ${stage}\tboth`
      writeFileSync(join(w.root, 'lines'), `${[1, 2, 3].map(line).join('\n')}\n`)
      w.user('-c', 'alias.x=!git update-index --index-info <"$1" #', 'x', join(w.root, 'lines'))
    },
    'objects that are gone': (w) => {
      const blob = w.user('rev-parse', 'HEAD:run.sh').trim()
      rmSync(join(w.dir, '.git', 'objects', blob.slice(0, 2), blob.slice(2)))
    },
  }
  test.each(Object.keys(refused))('is left to git: %s', async (name) => {
    const w = worldOfTest()
    w.write('a.txt', 'other\n')
    w.write('src/b.txt', 'other\n')
    const asked = { present: ['a.txt', 'src/b.txt'], deleted: [] }
    await copyIndex(w.gitPort, join(w.dir, '.git', 'index'), privateIndex(w))
    expect(await writePlainTree(w.gitPort, privateIndex(w), asked)).toBeDefined()
    refused[name]?.(w)
    await copyIndex(w.gitPort, join(w.dir, '.git', 'index'), privateIndex(w))
    const before = statSync(privateIndex(w))
    expect(await writePlainTree(w.gitPort, privateIndex(w), asked)).toBeUndefined()
    expect(statSync(privateIndex(w)).ino).toBe(before.ino)
  })

  test.each(['.GITignore', 'git~1/x', 'a\\b', 'ümlaut', 'a:b', '../x'])(
    'is left to git: %s',
    async (name) => {
      const w = worldOfTest()
      const asked = { present: [Buffer.from(name).toString('latin1')], deleted: [] }
      if (!name.startsWith('..')) w.write(name, 'x')
      await copyIndex(w.gitPort, join(w.dir, '.git', 'index'), privateIndex(w))
      expect(await writePlainTree(w.gitPort, privateIndex(w), asked)).toBeUndefined()
    },
  )

  test('is left to git: links, what lies beyond one, folders in the place of files, and large files', async () => {
    const w = worldOfTest()
    await copyIndex(w.gitPort, join(w.dir, '.git', 'index'), privateIndex(w))
    const isLeft = async (...present: string[]): Promise<boolean> =>
      (await writePlainTree(w.gitPort, privateIndex(w), { present, deleted: [] })) === undefined
    symlinkSync('a.txt', join(w.dir, 'link'))
    symlinkSync('src', join(w.dir, 'beyond'))
    rmSync(join(w.dir, 'run.sh'))
    mkdirSync(join(w.dir, 'run.sh'))
    w.write('run.sh/inside', 'x')
    w.write('large', Buffer.alloc(1024 * 1024 + 1))
    w.write('small', 'x')
    expect(await isLeft('small')).toBe(false)
    for (const path of ['link', 'beyond/b.txt', 'run.sh/inside', 'large', 'nowhere'])
      expect([path, await isLeft(path)]).toEqual([path, true])
  })
})
