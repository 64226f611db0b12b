// Where ralph itself lies, and what starts it: a loop reads parts of itself while it runs, and whoever calls it next runs the rest, outside of every cage.
import { copyFileSync, lstatSync, readdirSync, realpathSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { once } from '../../core/once.ts'
import { isFolder, isLink } from './cage-home.ts'

/**
 * Its package and the folders of programs beside it, where a package manager has put it; whoever runs it from its own sources works on these. As it
 * was at the start: an agent may change the links that led there.
 */
export const ownFolders = once((): readonly string[] => {
  const started = process.argv[1] ?? ''
  const folder = dirname(real(started))
  const own = basename(folder) === 'dist' ? dirname(folder) : folder
  const modules = [started, own].flatMap(foldersAbove).filter((path) => basename(path) === 'node_modules')
  return modules.length === 0 ? [] : [own, ...new Set(modules.map((path) => join(path, '.bin')))]
})

/** Those of them that are links, as pnpm makes them, and where they led at the start: a link cannot be protected. */
export const ownLinks = once((): ReadonlyMap<string, string> => {
  const beside = ownFolders()
    .filter((path) => basename(path) === '.bin')
    .map((path) => join(dirname(path), 'ralphtool'))
  return new Map(beside.filter(isLink).map((path) => [path, real(path)]))
})

/**
 * Files of the program that have another name elsewhere, as pnpm and bun make them, get a place of their own: whoever writes in the store, a cache
 * that a caged agent may write, would write them. Those of somebody else it cannot write by any name.
 */
export const makeOwnApart = once((): readonly string[] => {
  const shared = ownFolders()
    .slice(0, 1)
    .flatMap((own) => [own, join(own, 'dist')].filter(isFolder))
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .filter((file) => {
      const { uid, nlink } = lstatSync(file)
      return nlink > 1 && !isFolder(file) && [uid, 0].includes(process.getuid?.() ?? 0)
    })
  for (const file of shared) {
    copyFileSync(file, `${file}.${process.pid}`)
    renameSync(`${file}.${process.pid}`, file)
  }
  return shared
})

export function hasMoved([path, was]: readonly [string, string]): boolean {
  return real(path) !== was
}

function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** Of an absolute path. */
export function foldersAbove(path: string): string[] {
  const above: string[] = []
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1))
    above.push(path.slice(0, end))
  return path === '/' ? [] : [...above, '/']
}
