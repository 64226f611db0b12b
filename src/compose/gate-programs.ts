// Gates whose program, script or target is not there: known before an agent is paid for work that nothing could check.
import { existsSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { RalphError } from '../core/error.ts'
import { missingTarget } from './gate-targets.ts'
import { noProgram } from './programs.ts'
import type { Fault, Place } from './programs.ts'

/** Exit 2: what was typed or configured is wrong. */
export async function refuseMissingGates(gates: readonly string[], place: Place): Promise<void> {
  for (const gate of gates) {
    const missing = await cannotRun(gate, place)
    if (missing === undefined) continue
    throw new RalphError('config', missing.detail, { hint: missing.fix })
  }
}

/** What is surely mistyped. */
export async function cannotRun(gate: string, place: Place): Promise<Fault | undefined> {
  const program = await missingProgram(gate, place)
  if (program !== undefined) return program
  const path = missingPath(gate, place.cwd)
  if (path?.isOutside)
    return {
      detail: `The gate \`${gate}\` cannot run: there is no ${path.word}.`,
      fix: 'Correct the path: --verify, or verify: in ralph.yaml.',
    }
  const { name, near, detail } = missingTarget(gate, place.cwd) ?? {}
  if (name === undefined || near === undefined) return undefined
  return {
    detail: `The gate \`${gate}\` cannot run: ${detail ?? ''}.`,
    fix: meantWords(
      near,
      gate.replace(wordOf(name), () => near),
    ),
  }
}

/** A script that is not there yet: a story may bring it, or nobody. */
export function openTargets(gates: readonly string[], cwd: string): readonly string[] {
  return gates.flatMap((gate) => {
    const path = missingPath(gate, cwd)
    const { near, detail } =
      path === undefined
        ? (missingTarget(gate, cwd) ?? {})
        : { near: undefined, detail: `there is no ${path.word}` }
    return detail === undefined || near !== undefined
      ? []
      : [`${detail}: until a story adds it, the gate \`${gate}\` cannot run, and the loop stops there`]
  })
}

/** By gate, the name that was not there when the loop began: that it is not there later is no fault of an agent's. */
export function absentTargets(gates: readonly string[], cwd: string): ReadonlyMap<string, string> {
  return new Map(
    gates.flatMap((gate) => {
      const name = missingTarget(gate, cwd)?.name
      return name === undefined ? [] : [[gate, name] as const]
    }),
  )
}

/** The path that a gate begins with, where nothing is there; what only a shell could tell is let through. */
function missingPath(gate: string, cwd: string): { word: string; isOutside: boolean } | undefined {
  const [word] = /^[\w.+@-]*\/[\w./+@-]*(?=$|[\s;&|<>])/.exec(gate.trim()) ?? []
  if (word === undefined || existsSync(resolve(cwd, word))) return undefined
  return { word, isOutside: relative(cwd, resolve(cwd, word)).startsWith('..') }
}

function wordOf(name: string): RegExp {
  return new RegExp(`(?<![\\w:.-])${name.replaceAll('.', String.raw`\.`)}(?![\\w:.-])`)
}

function meantWords(near: string, meant: string): string {
  return `Did you mean ${near}? Then: --verify "${meant}", or in ralph.yaml: verify: ["${meant}"]`
}

async function missingProgram(gate: string, place: Place): Promise<Fault | undefined> {
  const missing = await noProgram(gate, place)
  if (missing === undefined) return undefined
  const { word, near, meant } = missing
  return {
    detail: `The gate \`${gate}\` cannot run: there is no program ${word} on PATH.`,
    fix:
      near === undefined
        ? `Install ${word}, or change the gate: --verify, or verify: in ralph.yaml.`
        : meantWords(near, meant),
  }
}
