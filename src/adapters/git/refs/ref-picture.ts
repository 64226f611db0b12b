// All refs by name, as a few over many: a repository may have tens of thousands, of which a story moves one.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readRecord, writeDurably } from '../../files/whole.ts'

export type RefMap = Readonly<Record<string, string>>

interface Layers {
  readonly base: RefMap
  /** With an empty hash what is in the base and not there. */
  readonly over: ReadonlyMap<string, string>
}

const layers = new WeakMap<RefMap, Layers>()
/** Of each base the last one: what is looked at again is mostly the same. */
const latest = new WeakMap<RefMap, { readonly key: string; readonly all: RefMap }>()

/** The same layers are the same picture. */
export function picture(base: RefMap, over: ReadonlyMap<string, string>): RefMap {
  const key = JSON.stringify(Object.fromEntries(over))
  const last = latest.get(base)
  if (last?.key === key) return last.all
  const all: Record<string, string> = { ...base }
  for (const [name, hash] of over) {
    if (hash === '') delete all[name]
    else all[name] = hash
  }
  layers.set(all, { base, over })
  latest.set(base, { key, all })
  return all
}

function layersOf(refs: RefMap): Layers {
  return layers.get(refs) ?? { base: refs, over: new Map() }
}

export function withRef(refs: RefMap, name: string, hash: string): RefMap {
  const { base, over } = layersOf(refs)
  return picture(base, new Map([...over, [name, hash]]))
}

/** Names that may differ; those that do are among them. */
export function mayDiffer(one: RefMap, other: RefMap): ReadonlySet<string> {
  if (one === other) return new Set()
  const [a, b] = [layersOf(one), layersOf(other)]
  if (a.base === b.base) return new Set([...a.over.keys(), ...b.over.keys()])
  return new Set([...Object.keys(one), ...Object.keys(other)])
}

/** As a record holds them: the base in a file of its own, where there are many, for it seldom changes. */
interface Recorded {
  readonly refs: RefMap
  readonly refs_base?: string | undefined
}

export async function writeBase(folder: string, refs: RefMap): Promise<Recorded> {
  const { base, over } = layersOf(refs)
  const known = baseFile(refs)
  if (known === '') return { refs }
  if (known !== undefined && existsSync(join(folder, known)))
    return { refs: Object.fromEntries(over), refs_base: known }
  const text = JSON.stringify(base)
  const name = text.length < 20_000 ? '' : `refs-${createHash('sha1').update(text).digest('hex')}.json`
  if (name !== '') await writeDurably(join(folder, name), text)
  bases.set(base, name)
  return await writeBase(folder, refs)
}

/** Undefined where the base is gone. */
export async function withBase(
  folder: string,
  { refs, refs_base = '' }: Recorded,
  schema: { parse(value: unknown): RefMap },
): Promise<RefMap | undefined> {
  const base = refs_base === '' ? {} : await readRecord(join(folder, refs_base), schema)
  return base === undefined ? undefined : picture(base, new Map(Object.entries(refs)))
}

/** Empty where it needs none; undefined where it is not written yet. */
export function baseFile(refs: RefMap): string | undefined {
  return bases.get(layersOf(refs).base)
}

const bases = new WeakMap<RefMap, string>()
