// Bundles the program: a small door and a few packs of code behind it, no dependency at run time.
import { build } from 'esbuild'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Writable } from 'node:stream'
import { promisify } from 'node:util'
import { writePacks } from './packs.mjs'

const root = new URL('..', import.meta.url)
const { version } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))

const [ready, fresh, old] = ['dist', `dist-new-${process.pid}`, `dist-old-${process.pid}`].map(
  (name) => new URL(name, root),
)
const options = {
  absWorkingDir: root.pathname,
  outdir: fresh.pathname,
  bundle: true,
  platform: 'node',
  target: 'node20',
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'external',
  logLevel: 'warning',
  // A state that another core came to is not gone on from (src/adapters/files/kept-state.ts).
  define: { RALPH_CORE: JSON.stringify(await hashOf('src/core/')) },
}
await mkdir(fresh)
const { program, packs } = await writePacks(options)
const define = {
  ...options.define,
  RALPH_VERSION: JSON.stringify(version),
  RALPH_PROGRAM: JSON.stringify(program),
  RALPH_PACKS: JSON.stringify(packs.join(' ')),
}
const doors = { main: 'src/main.ts', statusline: 'src/statusline.ts' }
await build({ ...options, entryPoints: doors, format: 'cjs', define })
await writeLibrary()
await writeFile(new URL(`${fresh.href}/package.json`), '{ "type": "commonjs" }\n')
await chmod(new URL(`${fresh.href}/main.js`), 0o755)
await writeHelp()
const looking = ['list', 'config', 'doctor', 'usage']
const lookingAt = ['status', 'show', 'prompt', 'history', 'why', 'logs', 'report', 'attempts']
await warm()
// Put in place at the end: whoever runs the program meanwhile never sees half of it.
await rename(ready, old).catch((error) => {
  if (error.code !== 'ENOENT') throw error
})
await rename(fresh, ready)
await rm(old, { recursive: true, force: true })

/** One script that can be imported and required; its types are the text of those of the source, which need no other file. */
async function writeLibrary() {
  const { metafile } = await build({
    ...options,
    entryPoints: { library: 'src/library/index.ts' },
    format: 'cjs',
    // Node prints the line that threw above an error that nobody caught.
    lineLimit: 120,
    metafile: true,
  })
  const shown = Object.keys(metafile.inputs).filter((path) =>
    /^src\/ui\/(?:cli|tui)\/|node_modules\/(?:ink|react|commander)\//.test(path),
  )
  if (shown.length > 0) throw new Error(`the library has what only the program needs: ${shown.join(', ')}`)
  const [types, api] = await Promise.all(
    ['types', 'api'].map((name) => readFile(new URL(`src/library/${name}.ts`, root), 'utf8')),
  )
  const text = `${types}\n${api.replaceAll(/^import .*\n/gm, '')}`
  if (/^(?:import|export) .* from |\bimport\(/m.test(text))
    throw new Error('the types of the library need another file')
  await writeFile(new URL(`${fresh.href}/library.d.ts`), text)
}

/** A page of help for each command, from the program's own table; the door prints it without loading anything. */
async function writeHelp() {
  const outfile = new URL(`${fresh.href}/help.cjs`).pathname
  const { outdir: _, ...toFile } = options
  const entryPoints = ['src/ui/cli/run.ts']
  await build({ ...toFile, outfile, entryPoints, format: 'cjs', packages: 'external' })
  const { run } = createRequire(import.meta.url)(outfile)
  await rm(outfile)
  const said = async (columns, ...words) => {
    let text = ''
    const stdout = new Writable({
      write: (chunk, _encoding, done) => {
        text += chunk
        done()
      },
    })
    const io = {
      env: { NO_COLOR: '1', COLUMNS: String(columns) },
      cwd: root.pathname,
      stdout,
      stderr: stdout,
    }
    await run(words, { io, version })
    return text
  }
  const names = (await said(80, 'complete', '--', ''))
    .trim()
    .split('\n')
    .map((line) => line.split('\t')[0])
  // Of a pipe and the usual small terminal, and of a wide one.
  for (const columns of [80, 100]) {
    const folder = `${fresh.href}/help/${columns}`
    await mkdir(new URL(folder), { recursive: true })
    await writeFile(new URL(`${folder}/ralph.txt`), await said(columns, 'help'))
    for (const name of names) {
      const page = await said(columns, 'help', name)
      const called = /^Usage: ralph (\S+)/.exec(page)?.[1]?.split('|') ?? []
      if (!called.includes(name)) throw new Error(`the built program cannot say the help of ${name}: ${page}`)
      for (const alias of called) await writeFile(new URL(`${folder}/${alias}.txt`), page)
    }
  }
}

async function hashOf(path) {
  const folder = new URL(path, root)
  const hash = createHash('sha256')
  for (const name of (await readdir(folder)).toSorted()) hash.update(await readFile(new URL(name, folder)))
  return hash.digest('hex').slice(0, 16)
}

/** A small loop in a repository of its own, and a look at it by each command that can: at their ends they keep what V8 made of them. */
async function warm() {
  const repo = await mkdtemp(join(tmpdir(), 'ralph-build-'))
  // Without the project's own programs, which npm puts there: nobody waits for `openspec` here.
  const PATH = process.env.PATH.split(delimiter)
    .filter((folder) => !folder.endsWith(join('node_modules', '.bin')))
    .join(delimiter)
  const at = { cwd: repo, env: { ...process.env, PATH, GIT_CONFIG_GLOBAL: '/dev/null', HOME: repo } }
  const call = (file, ...args) => promisify(execFile)(file, args, at)
  try {
    await mkdir(join(repo, 'openspec/changes/demo'), { recursive: true })
    const tasks = '## 1. One\n\n- [ ] 1.1 a\n\n## 2. Two\n\n- [ ] 2.1 b\n'
    await writeFile(join(repo, 'openspec/changes/demo/tasks.md'), tasks)
    const git = (...args) => call('git', '-c', 'user.name=build', '-c', 'user.email=build@localhost', ...args)
    await git('init', '-q')
    await git('add', '-A')
    await git('commit', '-qm', 'start')
    const agent =
      'echo x >> $RALPH_STORY.txt; [ $RALPH_ATTEMPT = 1 ] && echo "<promise>FAILED: no</promise>" || echo "<promise>COMPLETE</promise>"'
    const main = new URL(`${fresh.href}/main.js`).pathname
    const how = ['--agent-command', agent, '--verify', 'true', '--on-complete', 'cleanup']
    await call(process.execPath, main, 'loop', 'demo', ...how)
    await mkdir(join(repo, 'openspec/changes/next'))
    await writeFile(join(repo, 'openspec/changes/next/tasks.md'), tasks)
    const unfinished = ['--agent-command', agent, '--max-iterations', '2']
    await call(process.execPath, main, 'loop', 'next', ...unfinished).catch(({ code }) => {
      if (code !== 3) throw new Error(`a loop of two iterations ended with ${code}`)
    })
    const looks = [...looking, ...lookingAt.map((name) => `${name} next`)]
    await Promise.all(
      looks.map((look) =>
        call(process.execPath, main, ...look.split(' ')).catch((error) => {
          if (look !== 'doctor') throw error
        }),
      ),
    )
  } catch (error) {
    console.warn(`the first start will be slower: ${error.message}`)
  } finally {
    await rm(repo, { recursive: true, force: true })
  }
}
