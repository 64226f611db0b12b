// How an agent put both sides of a conflict together, judged by what is in git: each hunk, each file that had none, and the tests.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Conflict } from '../../../core/queue.ts'
import { droppedSides, hasMarkers, hunksIn, isTest, piecesOf, weakerTest } from '../../../core/resolution.ts'
import type { Piece, Sides } from '../../../core/resolution.ts'
import { inScratch } from '../../process/temp.ts'
import { named, type Git } from '../git.ts'
import { isAncestor, treeChanges } from '../tree/tree.ts'

export interface Judged {
  /** One sentence for each thing that is wrong; none where it may land. */
  readonly problems: readonly string[]
  /** Files without a conflict that are not as git merged them. */
  readonly beside: readonly string[]
}

export async function judgeResolution(git: Git, conflict: Conflict, tip: string): Promise<Judged> {
  const { base, tip: before, marked, paths, generated, said } = conflict
  const wrong = (problem: string): Judged => ({ problems: [problem], beside: [] })
  if (!(await isAncestor(git, base, tip))) return wrong('what landed is not part of the branch any more')
  if (!(await isAncestor(git, before, tip)))
    return wrong('what the change had done is not part of the branch any more')
  const [fork = ''] = (await git.line(['merge-base', base, before])).split('\n')
  const [inFork, inLanded, inOwn, inNow] = await Promise.all(
    [fork, base, before, tip].map((commit) => blobs(git, commit)),
  )
  const stages = await conflictStages(git, base, before)
  const problems: string[] = []
  const known = new Set([...paths, ...generated])
  const moved = (await treeChanges(git, marked, tip)).filter(({ path }) => !known.has(path))
  const elsewhere = await Promise.all(moved.map(({ path }) => textOf(git, inNow?.get(path))))
  for (const path of paths) {
    const [started, landed, own] = [1, 2, 3].map((stage) => stages.get(path)?.get(stage))
    const now = inNow?.get(path)
    // A plan that the specs have overtaken: OpenSpec itself says whether it fits now.
    if (said !== undefined) continue
    problems.push(...(await inConflict(git, path, { started, landed, own, now }, elsewhere.join('\n'))))
    problems.push(...otherMode(path, modesOf(started?.mode, landed?.mode, own?.mode), now?.mode))
  }
  for (const { path, from, to } of moved) {
    const name = named(path)
    if (from === undefined) {
      const text = await textOf(git, inNow?.get(path))
      if (text !== undefined && hasMarkers({ fork: '', landed: '', own: '', now: text }))
        problems.push(`${name} has conflict markers`)
    } else if (isTest(path))
      problems.push(
        `the test ${name} was ${to === undefined ? 'deleted' : 'changed'}, and it had no conflict`,
      )
    else if (to === undefined) problems.push(`${name} was deleted, and it had no conflict`)
    else {
      const all = [inFork?.get(path), inLanded?.get(path), inOwn?.get(path), inNow?.get(path)]
      problems.push(...judgedText(name, await sidesOf(git, all)), ...otherMode(path, [from], to))
    }
  }
  return { problems, beside: moved.map(({ path }) => named(path)) }
}

/**
 * Files of a candidate with markers that a merge has left: those of a merge on the change's branch which neither of its sides had, and those
 * that name commits of this repository, as ralph's own merges do. A change may write about markers; then no merge has brought them.
 */
export async function markersLeft(
  git: Git,
  { base, tip, commit }: { readonly base: string; readonly tip: string; readonly commit: string },
): Promise<readonly string[]> {
  const how = ['-r', '-z', '--name-only', '--no-renames', '--text', '--no-textconv', '--no-ext-diff']
  const paths = await git.list(['diff-tree', ...how, String.raw`-G^(<{7}|={7}|>{7}|\|{7})`, base, commit])
  if (paths.length === 0) return []
  const merges = (await git.line(['rev-list', '--parents', '--merges', tip, `^${base}`]))
    .split('\n')
    .filter((line) => line !== '')
  const [inBase, inNow] = [await blobs(git, base), await blobs(git, commit)]
  const left = new Set<string>()
  for (const path of paths) {
    const now = (await textOf(git, inNow.get(path))) ?? ''
    const before = (await textOf(git, inBase.get(path))) ?? ''
    for (const [, name = ''] of now.matchAll(/^(?:<{7,}|>{7,}|\|{7,}) ([0-9a-f]{40,64})\b/gm))
      if (
        !before.includes(name) &&
        (await git.run(['cat-file', '-e', name], { accept: [1, 128] })).code === 0
      )
        left.add(path)
  }
  for (const line of merges) {
    const [inMerge, inOwn, inOther] = await Promise.all(line.split(' ').map((each) => blobs(git, each)))
    for (const path of paths.filter((each) => !left.has(each))) {
      const sides = [undefined, inOther?.get(path), inOwn?.get(path)]
      const [merged, now] = [
        await sidesOf(git, [...sides, inMerge?.get(path)]),
        await sidesOf(git, [...sides, inNow.get(path)]),
      ]
      if (merged && now && hasMarkers(merged) && hasMarkers(now)) left.add(path)
    }
  }
  return [...left].map(named)
}

type Blob = { readonly mode: string; readonly hash: string } | undefined

async function inConflict(
  git: Git,
  path: string,
  { started, landed, own, now }: Readonly<Record<'started' | 'landed' | 'own' | 'now', Blob>>,
  /** What was written into files that had no conflict. */
  elsewhere: string,
): Promise<readonly string[]> {
  const name = named(path)
  if (now === undefined) {
    if (landed !== undefined && own !== undefined) return [`${name} was deleted, and both sides have it`]
    // One side had moved its content away: there the other one's part has to be.
    const sides = await sidesOf(git, [started, landed, own, undefined])
    const dropped = sides === undefined ? [] : droppedSides({ ...sides, now: `${sides.fork}\n${elsewhere}` })
    return words(
      name,
      dropped.filter((side) => (side === 'own') === (landed === undefined)),
    )
  }
  if (landed === undefined || own === undefined)
    return [`${name} is there, and ${landed === undefined ? 'what landed' : 'this change'} deleted it`]
  const sides = await sidesOf(git, [started, landed, own, now])
  if (sides === undefined) {
    if (now.hash === landed.hash) return words(name, ['own'])
    return now.hash === own.hash ? words(name, ['landed']) : []
  }
  if (hasMarkers(sides)) return [`${name} has conflict markers`]
  const pieces = await mergedPieces(git, sides)
  const dropped = new Set([sides, ...hunksIn(pieces, sides.now)].flatMap(droppedSides))
  const alone = pieces.flatMap((piece) => ('line' in piece ? [piece.line] : []))
  const weaker = isTest(path) ? weakerTest(sides, alone) : ''
  return [...words(name, [...dropped]), ...(weaker === '' ? [] : [`the test ${name} ${weaker}`])]
}

/** What both sides make of the mode of a file: more than one where each wants its own. */
function modesOf(
  started: string | undefined,
  landed: string | undefined,
  own: string | undefined,
): readonly (string | undefined)[] {
  if (landed === started) return [own]
  return own === started ? [landed] : [landed, own]
}

function otherMode(
  path: string,
  wanted: readonly (string | undefined)[],
  now: string | undefined,
): readonly string[] {
  // Of a file that is there on both sides and now: what else there is, is judged as a file that is gone.
  if (now === undefined || wanted.includes(undefined) || wanted.includes(now)) return []
  return [`${named(path)} has the mode ${now}, and both sides together give ${wanted.join(' or ')}`]
}

function judgedText(name: string, sides: Sides | undefined): readonly string[] {
  if (sides === undefined) return []
  if (hasMarkers(sides)) return [`${name} has conflict markers`]
  return words(name, droppedSides(sides))
}

function words(name: string, dropped: readonly ('landed' | 'own')[]): readonly string[] {
  if (dropped.length === 0) return []
  const both = dropped.map((side) => (side === 'own' ? 'what this change did' : 'what landed')).join(' and ')
  return [`in ${name} ${both} ${dropped.length === 1 ? 'was' : 'were'} dropped`]
}

/** Undefined where one of them is no text. */
async function sidesOf(git: Git, all: readonly Blob[]): Promise<Sides | undefined> {
  const texts = await Promise.all(
    all.map(async (blob) => (blob === undefined ? '' : await textOf(git, blob))),
  )
  const [fork, landed, own, now] = texts
  if (fork === undefined || landed === undefined || own === undefined || now === undefined) return undefined
  return { fork, landed, own, now }
}

async function textOf(git: Git, blob: Blob): Promise<string | undefined> {
  if (blob === undefined || !blob.mode.startsWith('100')) return undefined
  const { out } = await git.run(['cat-file', 'blob', blob.hash])
  return out.includes('\0') ? undefined : Buffer.from(out, 'latin1').toString('utf8')
}

/** Longer than any that stands in a file. */
const markerSize = 40

async function mergedPieces(git: Git, { landed, fork, own }: Sides): Promise<readonly Piece[]> {
  return await inScratch(async (folder) => {
    const files = Object.entries({ landed, fork, own }).map(
      ([name, text]) => [join(folder, name), text] as const,
    )
    for (const [file, text] of files) await writeFile(file, text)
    const { out } = await git.run(
      ['merge-file', '-p', '-q', '--diff3', `--marker-size=${markerSize}`, ...files.map(([file]) => file)],
      // As many as it has hunks.
      { accept: Array.from({ length: 127 }, (_, at) => at + 1) },
    )
    return piecesOf(Buffer.from(out, 'latin1').toString('utf8'), markerSize)
  })
}

async function blobs(git: Git, commit: string): Promise<ReadonlyMap<string, Blob>> {
  const entries = await git.list(['ls-tree', '-r', '-z', '--full-tree', commit])
  return new Map(
    entries.map((entry) => {
      const [mode = '', , hash = ''] = entry.slice(0, entry.indexOf('\t')).split(' ')
      return [entry.slice(entry.indexOf('\t') + 1), { mode, hash }]
    }),
  )
}

/** Of each path in conflict: where it began (1), what landed (2), what the change has (3). */
async function conflictStages(
  git: Git,
  base: string,
  own: string,
): Promise<ReadonlyMap<string, ReadonlyMap<number, Blob>>> {
  const args = ['merge-tree', '--write-tree', '-z', '--no-messages', base, own]
  const [, ...entries] = (await git.run(args, { accept: [1] })).out.split('\0').filter((item) => item !== '')
  const found = new Map<string, Map<number, Blob>>()
  for (const entry of entries) {
    const path = entry.slice(entry.indexOf('\t') + 1)
    const [mode = '', hash = '', stage = ''] = entry.slice(0, entry.indexOf('\t')).split(' ')
    found.set(path, (found.get(path) ?? new Map<number, Blob>()).set(Number(stage), { mode, hash }))
  }
  return found
}
