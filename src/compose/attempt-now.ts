// What the attempt at hand has done so far, and what its gates print: looked at from outside, while the loop works; nothing is written.
import { copyFile, mkdir, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { gateLogIn } from '../adapters/files/paths.ts'
import { ifThere } from '../adapters/files/whole.ts'
import type { Git } from '../adapters/git/git.ts'
import { inScratch } from '../adapters/process/temp.ts'
import { showChange } from '../adapters/openspec/show.ts'
import { RalphError } from '../core/error.ts'
import type { AttemptNow, GateOutput } from '../ui/app.ts'
import { requireRun } from './choose.ts'
import { deathIn } from './reports.ts'
import { openSite } from './site.ts'
import type { Site } from './site.ts'

/** What a person looks through on a screen. */
const mostPatch = 512 * 1024
const mostOutput = 128 * 1024

export async function attemptNow(site: Site, change: string | undefined): Promise<AttemptNow> {
  const run = await requireRun(site, change)
  const { change: name, state } = run
  const { current, unsettled, root, worktree } = state
  const { orphan_pids = [] } = await deathIn(site, run)
  const nothing = { change_id: name, patch: '', is_cut: false, stories: [], orphan_pids }
  if (root === undefined) return nothing
  const stories = await showChange(root, name, site.env, worktree).then(
    (shown) => shown.stories,
    // In the middle of a write, or gone for now: the next look is soon.
    () => [],
  )
  const n = current?.n ?? unsettled?.n
  const base = current?.baseCommit ?? state.git.checkpoint
  if (n === undefined || base === undefined) return { ...nothing, stories }
  const there =
    worktree === site.git.worktree ? site : await openSite(worktree, site.env).catch(unlessGone(worktree))
  const whole = there === undefined ? '' : await inScratch((folder) => patchSince(there.git, base, folder))
  const patch = whole.slice(0, mostPatch)
  return { ...nothing, n, patch, is_cut: patch.length < whole.length, stories }
}

function unlessGone(worktree: string): (error: unknown) => Promise<undefined> {
  return async (error) => {
    if ((await ifThere(stat(worktree))) === undefined) return undefined
    throw error
  }
}

/**
 * By an index of its own, which begins as a copy of the tree's, so that git need not read every file; and with a store of its own, for the
 * empty object that git makes for a new file.
 */
async function patchSince(git: Git, base: string, folder: string): Promise<string> {
  try {
    const index = join(folder, 'index')
    const objects = join(folder, 'objects')
    await mkdir(objects)
    const own = {
      GIT_OBJECT_DIRECTORY: objects,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(git.gitCommonDir, 'objects'),
    }
    if ((await ifThere(copyFile(join(git.gitDir, 'index'), index).then(() => true))) === undefined)
      await git.run(['read-tree', base], { index, env: own })
    const fresh = await git.list(['ls-files', '--others', '--exclude-standard', '-z'], { index, env: own })
    // One that ends in `/` is a repository of its own.
    const files = fresh.filter((path) => !path.endsWith('/')).slice(0, mostFresh)
    if (files.length > 0)
      await git.run(['add', '--intent-to-add', '--pathspec-from-file=-', '--pathspec-file-nul'], {
        index,
        env: own,
        input: Buffer.from(files.join('\0'), 'latin1'),
      })
    const plain = ['--no-ext-diff', '--no-textconv', '--no-color', '-M']
    const { out } = await git.run(['-c', 'core.bigFileThreshold=1m', 'diff', ...plain, base, '--'], {
      index,
      env: own,
    })
    return Buffer.from(out, 'latin1').toString('utf8')
  } catch (error) {
    // The loop works in this tree: what was there a moment ago may be gone, and the next look is soon.
    if (error instanceof RalphError && error.code === 'git_failed') return ''
    throw error
  }
}

const mostFresh = 2_000

export async function gateOutput(
  site: Site,
  { change, n }: { readonly change: string | undefined; readonly n: number },
): Promise<GateOutput> {
  const { change: name, paths } = await requireRun(site, change)
  const own = await tailOf(gateLogIn(paths.transcripts, n))
  const hand = await tailOf(gateLogIn(paths.transcripts, n, true))
  return { change_id: name, n, text: own.text + hand.text, is_cut: own.is_cut || hand.is_cut }
}

async function tailOf(path: string): Promise<Pick<GateOutput, 'text' | 'is_cut'>> {
  const file = await ifThere(open(path, 'r'))
  if (file === undefined) return { text: '', is_cut: false }
  try {
    const { size } = await file.stat()
    const from = Math.max(0, size - mostOutput)
    const bytes = Buffer.alloc(size - from)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, from)
    const text = bytes.subarray(0, bytesRead).toString('utf8')
    // The first line is half a line.
    return { text: from === 0 ? text : text.slice(text.indexOf('\n') + 1), is_cut: from > 0 }
  } finally {
    await file.close()
  }
}
