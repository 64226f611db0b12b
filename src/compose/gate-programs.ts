// Gates whose program, script or target is not there: known before an agent is paid for work that nothing could check.
import { readdirSync } from 'node:fs'
import { delimiter } from 'node:path'
import { exec } from '../adapters/process/exec.ts'
import { onPath } from '../adapters/process/on-path.ts'
import { RalphError } from '../core/error.ts'
import { nearest } from '../core/nearest.ts'
import { missingTarget } from './gate-targets.ts'

type Place = { readonly cwd: string; readonly env: NodeJS.ProcessEnv }

/** Exit 2: what was typed or configured is wrong. */
export async function refuseMissingGates(gates: readonly string[], place: Place): Promise<void> {
  for (const gate of gates) {
    const missing = await cannotRun(gate, place)
    if (missing === undefined) continue
    throw new RalphError('config', missing.detail, { hint: missing.fix })
  }
}

interface Fault {
  readonly detail: string
  readonly fix: string
}

/** What is surely mistyped. */
export async function cannotRun(gate: string, place: Place): Promise<Fault | undefined> {
  const program = await missingProgram(gate, place)
  if (program !== undefined) return program
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
    const { near, detail } = missingTarget(gate, cwd) ?? {}
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

function wordOf(name: string): RegExp {
  return new RegExp(`(?<![\\w:.-])${name.replaceAll('.', String.raw`\.`)}(?![\\w:.-])`)
}

function meantWords(near: string, meant: string): string {
  return `Did you mean ${near}? Then: --verify "${meant}", or in ralph.yaml: verify: ["${meant}"]`
}

/** Undefined where the program is there, or where only a shell could tell which one it is. */
async function missingProgram(gate: string, { cwd, env }: Place): Promise<Fault | undefined> {
  const [word] = /^[A-Za-z][\w.+-]*(?=$|[\s;&|<>])/.exec(gate.trim()) ?? []
  if (word === undefined || onPath(word, env) !== undefined) return undefined
  // The shell that runs gates has words of its own, such as `test` and `if`.
  const asked = await exec('sh', ['-c', 'command -v "$1"', 'sh', word], { cwd, env, timeoutMs: 10_000 })
  if (asked.exitCode !== 127 && asked.exitCode !== 1) return undefined
  const near = nearest(word, programsOn(env))
  const meant = gate.trim().replace(word, near ?? '')
  return {
    detail: `The gate \`${gate}\` cannot run: there is no program ${word} on PATH.`,
    fix:
      near === undefined
        ? `Install ${word}, or change the gate: --verify, or verify: in ralph.yaml.`
        : meantWords(near, meant),
  }
}

function programsOn(env: NodeJS.ProcessEnv): readonly string[] {
  const names = (env['PATH'] ?? '').split(delimiter).flatMap((folder) => {
    try {
      return folder === '' ? [] : readdirSync(folder)
    } catch {
      // Many a PATH names folders that are not there.
      return []
    }
  })
  // The usual programs first: of equally near ones the first is named.
  return [...new Set([...usual.filter((name) => names.includes(name)), ...names])]
}

const usual = [
  'npm',
  'npx',
  'pnpm',
  'yarn',
  'bun',
  'node',
  'make',
  'cargo',
  'go',
  'pytest',
  'python3',
  'deno',
]
