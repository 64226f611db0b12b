// Finds a program on PATH the way a shell does, so that "not installed" is told apart from "failed".
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import { faultCode } from './fault.ts'

/** An empty or relative entry of PATH means a folder that is the agent's to write in: nothing is taken from there. */
export function onPath(program: string, env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => isAbsolute(folder))
  return folders.map((folder) => join(folder, program)).find(isProgram)
}

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch (error) {
    if (faultCode(error) !== '') return false
    throw error
  }
}
