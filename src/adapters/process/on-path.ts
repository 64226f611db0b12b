// Finds a program on PATH the way a shell does, so that "not installed" is told apart from "failed".
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { isWithin } from '../../core/cage.ts'
import { faultCode } from './fault.ts'

/** An empty or relative entry of PATH means a folder that is the agent's to write in: nothing is taken from there. */
export function onPath(program: string, env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => isAbsolute(folder))
  return folders.map((folder) => join(folder, program)).find(isProgram)
}

/**
 * For programs that ralph itself runs, outside of any cage: npm and virtual environments put folders of the work tree on PATH, where an agent
 * may leave a `git` of its own. Who has the home as a work tree has all programs there.
 */
export function ownEnv(env: NodeJS.ProcessEnv, from: string): NodeJS.ProcessEnv {
  const tree = treeAround(real(from))
  if (isWithin(real(env['HOME'] ?? '/'), tree)) return env
  const folders = (env['PATH'] ?? '').split(delimiter)
  const others = folders.filter((folder) => !isWithin(folder, tree) && !isWithin(real(folder), tree))
  return others.length === folders.length ? env : { ...env, PATH: others.join(delimiter) }
}

function treeAround(from: string): string {
  for (let folder = from; folder !== dirname(folder); folder = dirname(folder))
    if (existsSync(join(folder, '.git'))) return folder
  return from
}

function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

export function isProgram(path: string): boolean {
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return false
    accessSync(path, constants.X_OK)
    return true
  } catch (error) {
    if (faultCode(error) !== '') return false
    throw error
  }
}
