// The end of an attempt, beyond its files: what gates did to refs goes back, others' commits are named, the ledger goes.
import { aliasesTold, putBackAliases, readAliases, withoutAliases } from '../refs/aliases.ts'
import { readLedger } from '../refs/ledger.ts'
import { missingObjects } from '../refs/pins.ts'
import { moveRefs, readRefs, setHead, shortRef } from '../refs/refs.ts'
import { undoRefs } from '../refs/undo-refs.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { keepDropped } from '../stash/dropped.ts'
import { planStashes, putBackBeside, putBackStashes, readStashLog } from '../stash/stash-list.ts'
import { forgetWatches, watchedGates } from '../refs/watch.ts'
import { againTold, besideTold, madeTold, movedAgain, planRefs } from '../refs/whose-refs.ts'

/** Before a save or a revert; what the agent did was settled when the attempt was kept. */
export async function settleGates(store: Store, snapshot: Snapshot): Promise<void> {
  const n = await watchedGates(store)
  if (n !== undefined) await undoGates(store, snapshot, n)
  await keepDropped(store, snapshot)
}

async function undoGates(store: Store, snapshot: Snapshot, n: number): Promise<void> {
  const { git } = store
  const all = await readLedger(store, n)
  const isGate = ({ by }: { readonly by: string }): boolean => by === 'gate'
  const ledger = {
    ...all,
    writes: all.writes.filter(isGate),
    commands: all.commands.filter(isGate),
    switches: all.switches.filter(isGate),
  }
  if (ledger.writes.length + ledger.commands.length === 0) return
  const besideBack = await putBackBeside(store, all, ledger)
  const [now, led, log] = await Promise.all([readRefs(git), readAliases(git), readStashLog(git)])
  const { own, again, aliases } = planRefs(store, snapshot, now.all, led, ledger)
  const stashes = planStashes(snapshot.stash_log, log, ledger)
  const gone = await missingObjects(git, [
    ...[...own.moved, ...own.deleted].map(({ from }) => from),
    ...stashes.dropped,
  ])
  // The loop's own branch goes where the checkpoint goes.
  const isOurs = ({ name, from }: { name: string; from: string }): boolean =>
    name !== `refs/heads/ralph/${store.change}` && !gone.has(from)
  const moved = own.moved.filter(isOurs)
  const deleted = own.deleted.filter(isOurs)
  const aside = (name: string): string => `${store.refs}/moved/${n}-gates/${name.replace(/^refs\//, '')}`
  await moveRefs(git, `gates of attempt ${n}`, [
    ...[...moved, ...own.created].map(({ name, to }) => `update ${aside(name)} ${to}`),
    ...stashes.made.map(({ hash }) => `update ${aside(`stash/${hash.slice(0, 12)}`)} ${hash}`),
  ])
  if (own.created.some(({ name }) => name === now.head.ref))
    await setHead(git, snapshot.head, 'after the gates')
  const changes = { moved, deleted, created: own.created }
  const undone = await undoRefs(git, changes, `refs/heads/ralph/${store.change}`)
  await putBackAliases(git, aliases.own)
  const back = stashes.dropped.filter((hash) => !gone.has(hash))
  await putBackStashes(git, snapshot.stash_log, { back, away: stashes.made.map(({ hash }) => hash) })
  const said = withoutAliases(undone, aliases.own)
  const lines = [
    ...said.moved.map(
      ({ name }) => `a gate moved ${shortRef(name)}; it is back, its version is ${aside(name)}`,
    ),
    ...said.deleted.map(({ name }) => `a gate deleted ${shortRef(name)}; it is back`),
    ...madeTold('a gate', said.created, aside),
    ...(await aliasesTold(git, 'a gate', aliases.own, aside)),
    ...againTold('a gate', again),
    ...movedAgain('a gate', changes, undone, aside),
    ...stashes.made.map(
      ({ hash, message }) => `a gate stashed work (${message}); it is kept: ${git.typed} stash apply ${hash}`,
    ),
    ...(back.length + besideBack > 0 ? ['a gate dropped stash entries; they are back'] : []),
  ]
  for (const message of lines) await store.note({ type: 'warning', code: 'gate_git', message })
}

/** After it: commits of others that are no part of the checkpoint are named, and nothing is watched any longer. */
export async function settled(
  store: Store,
  beside: readonly { readonly hash: string; readonly n: number }[],
  checkpoint: string,
): Promise<void> {
  for (const message of await besideTold(store, beside, checkpoint))
    await store.note({ type: 'warning', code: 'commit_off', message })
  await forgetWatches(store)
}
