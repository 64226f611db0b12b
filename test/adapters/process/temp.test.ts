// What an agent leaves is never in the way: temp folders that are read-only or of another user (R17), processes that hide (R4).
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { bundle } from '../../bundle.ts'
import { makeTemp, movedInto, removeTemp, removeTemps, tempBase } from '../../../src/adapters/process/temp.ts'

/** Root may remove everything: as root the tests go on as somebody else. Nothing is started so: a shell would take root back. */
const nobody = 65_534
let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ralph-temp-'))
  if (process.getuid?.() !== 0) return
  chownSync(root, nobody, nobody)
  process.seteuid?.(nobody)
})
afterEach(() => {
  if (process.getuid?.() === 0) process.seteuid?.(0)
  chmodSync(root, 0o700)
  rmSync(root, { recursive: true, force: true })
})

it('R17: folders that an agent left read-only go too, and nothing behind a link is opened', async () => {
  const folder = makeTemp('run', { TMPDIR: root })
  const outside = join(root, 'outside')
  mkdirSync(outside, { mode: 0o500 })
  mkdirSync(join(folder, 'cache', 'module'), { recursive: true })
  writeFileSync(join(folder, 'cache', 'module', 'file'), '')
  symlinkSync(outside, join(folder, 'link'))
  chmodSync(join(folder, 'cache', 'module'), 0o500)
  chmodSync(join(folder, 'cache'), 0)
  expect(await removeTemp(folder)).toBe(true)
  expect(existsSync(folder)).toBe(false)
  expect(statSync(outside).mode & 0o777).toBe(0o500)
})

it('R17: a link in the place of the folder is never followed', async () => {
  const outside = join(root, 'outside')
  mkdirSync(outside, { mode: 0o550 })
  symlinkSync(outside, join(root, 'link'))
  chmodSync(root, 0o500)
  expect(await removeTemp(join(root, 'link'))).toBe(false)
  expect(statSync(outside).mode & 0o777).toBe(0o550)
})

it('R17: a link that an agent put in the place of its folder takes no file with it', async () => {
  const folder = makeTemp('run', { TMPDIR: root })
  const outside = join(root, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'notes.txt'), "the user's")
  rmdirSync(folder)
  symlinkSync(outside, folder)
  await removeTemp(folder)
  expect(readFileSync(join(outside, 'notes.txt'), 'utf8')).toBe("the user's")
})

it('R17: what was moved into the folder is not deleted with it, and is named', async () => {
  mkdirSync(join(root, 'data'))
  writeFileSync(join(root, 'data', 'db'), "the user's")
  const bornAt = (path: string): bigint => statSync(path, { bigint: true }).birthtimeNs
  let folder = makeTemp('run', { TMPDIR: root })
  // The clock of the disk ticks every few milliseconds.
  while (bornAt(folder) <= bornAt(join(root, 'data'))) folder = makeTemp('run', { TMPDIR: root })
  writeFileSync(join(folder, 'cache'), '')
  mkdirSync(join(folder, 'deep'))
  renameSync(join(root, 'data'), join(folder, 'deep', 'data'))
  expect(movedInto(folder)).toEqual([join(folder, 'deep', 'data')])
  expect(await removeTemp(folder)).toBe(false)
  await removeTemps('run', { TMPDIR: root })
  expect(readFileSync(join(folder, 'deep', 'data', 'db'), 'utf8')).toBe("the user's")
})

it('R17: one that cannot be removed stops neither the others nor a recovery', async () => {
  const [first, second] = [makeTemp('run', { TMPDIR: root }), makeTemp('run', { TMPDIR: root })]
  chmodSync(root, 0o500)
  await removeTemps('run', { TMPDIR: root })
  expect([existsSync(first), existsSync(second)]).toEqual([true, true])
  chmodSync(root, 0o300)
  await removeTemps('run', { TMPDIR: root })
  chmodSync(root, 0o700)
  await removeTemps('run', { TMPDIR: root })
  expect([existsSync(first), existsSync(second)]).toEqual([false, false])
})

it('what a killed process left in its scratch folder is removed, and that of a living one is not', async () => {
  if (process.getuid?.() === 0) process.seteuid?.(0)
  const module = join(root, 'temp.cjs')
  bundle(join(import.meta.dirname, '../../../src/adapters/process/temp.ts'), module)
  const inside = `require(${JSON.stringify(module)}).inScratch((folder) => new Promise(() => { console.log(folder); setInterval(() => {}, 1e6) }))`
  const start = async (): Promise<{ readonly folder: string; readonly die: () => Promise<unknown> }> => {
    const child = spawn(process.execPath, ['-e', inside], { env: { TMPDIR: root } })
    const [folder] = await once(child.stdout, 'data')
    return {
      folder: String(folder).trim(),
      die: async () => {
        child.kill('SIGKILL')
        await once(child, 'exit')
      },
    }
  }
  const [dead, living] = await Promise.all([start(), start()])
  await dead.die()
  const sweep = `require(${JSON.stringify(module)}).removeScratch()`
  spawnSync(process.execPath, ['-e', sweep], { env: { TMPDIR: root } })
  expect([existsSync(dead.folder), existsSync(living.folder)]).toEqual([false, true])
  await living.die()
  spawnSync(process.execPath, ['-e', sweep], { env: { TMPDIR: root } })
  expect(readdirSync(root)).toEqual(['temp.cjs'])
})

it('R17: a COMPLETE stands although the temp folder cannot be removed, and the folder is named', () => {
  const { ended, warnings } = turnOfPlainUser('', 'locked')
  expect(ended).toMatchObject({ ending: 'finished', promise: { kind: 'complete' } })
  expect(warnings).toEqual([expect.stringContaining(join(root, 'ralph-run-'))])
})

it.runIf(process.platform === 'linux')(
  'R4: what holds the output and lets nobody look into it is told, with who it may be',
  () => {
    // A program that may be run but not read is closed to all but root.
    const tool = 'echo $$ > pid; exec ./hidden -f /dev/null'
    const isHidden = '[ -s pid ] && ! cat "/proc/$(cat pid)/environ" > /dev/null 2>&1'
    const { ended, warnings } = turnOfPlainUser(
      `cp "$(command -v tail)" hidden; chmod 111 hidden; env -i setsid sh -c '${tool}' & until ${isHidden}; do sleep 0.02; done;`,
    )
    const pid = readFileSync(join(root, 'pid'), 'utf8').trim()
    process.kill(Number(pid))
    expect(ended).toMatchObject({ ending: 'finished', promise: { kind: 'complete' } })
    expect(warnings).toEqual([expect.stringMatching(new RegExp(`could not find it.*process .*\\b${pid}\\b`))])
  },
)

function turnOfPlainUser(...args: readonly string[]): { ended: unknown; warnings: string[] } {
  if (process.getuid?.() === 0) process.seteuid?.(0)
  const driver = join(root, 'driver.cjs')
  bundle(join(import.meta.dirname, 'plain-user-driver.ts'), driver)
  const user = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {}
  const { stdout } = spawnSync(process.execPath, [driver, root, ...args], { ...user, encoding: 'utf8' })
  return JSON.parse(stdout) as { ended: unknown; warnings: string[] }
}

it('R17: a TMPDIR in a work tree is no place for what ralph makes: git would take it for a change', () => {
  const inside = join(root, 'repo', 'tmp')
  const ofGit = join(root, 'repo', '.git', 'ralph')
  for (const folder of [inside, ofGit]) mkdirSync(folder, { recursive: true })
  expect(tempBase({ TMPDIR: inside })).not.toContain(root)
  expect(tempBase({ TMPDIR: ofGit })).toBe(ofGit)
  expect(tempBase({ TMPDIR: root })).toBe(root)
})
