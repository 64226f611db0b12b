// Runs the user's gates: each by `sh -c` in the work tree, and nothing of it alive afterwards.
import { RalphError } from '../../core/error.ts'
import type { Limits } from '../../core/resource-limits.ts'
import {
  failureSentence,
  findFailure,
  lastLines,
  missesTarget,
  overtimeWords,
  ranNoTests,
  type GateFailure,
} from '../../core/gate-failure.ts'
import type { GateResult, Gates } from '../../ports.ts'
import { cageFault, type Cage } from './cage.ts'
import { faultMessage } from './fault.ts'
import { startGroup } from './group.ts'
import { boundedTail } from './tail.ts'
import { makeTemp, removeTemp } from './temp.ts'
import { openTranscript } from './transcript.ts'

export interface ShellGatesOptions {
  readonly cwd: string
  /** The user's environment, ralph's own if absent; what `check` is given comes on top. */
  readonly env?: NodeJS.ProcessEnv
  /** Without it a gate may take as long as it takes. */
  readonly timeoutMs?: number
  readonly graceMs?: number
  /** By command, the script or target that was not there when the loop began. */
  readonly absent?: ReadonlyMap<string, string>
  readonly cage?: Cage
  readonly limits?: Limits
  /** In a work tree of its own: others run beside it. A cage has one anyway. */
  readonly hasOwnTemp?: boolean
}

export function shellGates(options: ShellGatesOptions): Gates {
  const gates = inTheirTemp(options)
  if (options.hasOwnTemp !== true || options.cage !== undefined) return gates
  return {
    async check(command, env, stop, path) {
      const temp = makeTemp(env['RALPH_RUN_ID'] ?? 'set-up', options.env ?? process.env)
      try {
        return await gates.check(command, { ...env, TMPDIR: temp }, stop, path)
      } finally {
        await removeTemp(temp)
      }
    },
  }
}

function inTheirTemp(options: ShellGatesOptions): Gates {
  const { cage } = options
  return {
    async check(command, env, stop, path) {
      const began = performance.now()
      const tail = boundedTail(tailBytes)
      const searched = boundedTail(searchedBytes)
      let outputLines = 0
      let warning: string | undefined
      const log =
        path === undefined
          ? undefined
          : openTranscript(path, logBytes, (message) => (warning = message), 'the gate')
      log?.write(Buffer.from(`$ ${command}\n`))
      const hear = (chunk: Buffer): void => {
        tail.feed(chunk)
        searched.feed(chunk)
        log?.write(chunk)
        for (const byte of chunk) if (byte === lineFeed) outputLines += 1
      }
      const result = (rest: Pick<GateResult, 'outcome' | 'exitCode'>, note = ''): GateResult => {
        const durationMs = Math.round(performance.now() - began)
        const exit = rest.exitCode === undefined ? rest.outcome.replaceAll('_', ' ') : `exit ${rest.exitCode}`
        log?.write(Buffer.from(`${note === '' ? '' : `${note}\n`}(${exit}, ${durationMs} ms)\n\n`))
        log?.close()
        const failure =
          rest.outcome === 'failed' ? failureIn(inTree(searched.text(), options.cwd), note) : undefined
        return {
          ...rest,
          outputTail: [tail.text(), note].filter((text) => text !== '').join('\n'),
          outputLines,
          ...(failure !== undefined && { failure }),
          ...(rest.outcome === 'passed' && ranNoTests(searched.text()) && { ranNoTests: true }),
          ...(warning !== undefined && { warning }),
          durationMs,
        }
      }
      if (stop.aborted) return result({ outcome: 'stopped' })
      // One that runs for a claim is known by that, too: the agent is alive, and has the run's mark.
      const marks = ['RALPH_RUN_ID', 'RALPH_CLAIM']
      const marker = Object.fromEntries(Object.entries(env).filter(([name]) => marks.includes(name)))
      let group
      try {
        group = await startGroup({
          file: 'sh',
          args: ['-c', command],
          cwd: options.cwd,
          env: { ...(options.env ?? process.env), ...env },
          input: '',
          stdout: 'pipe',
          marker,
          ...(options.limits !== undefined && { limits: options.limits }),
          ...(cage !== undefined && { cage: (start) => cage.enter(start, {}) }),
          timeoutMs: options.timeoutMs ?? Number.POSITIVE_INFINITY,
          idleTimeoutMs: 0,
          graceMs: options.graceMs ?? 2000,
          onOutput: hear,
          onErrorOutput: hear,
        })
      } catch (error) {
        if (error instanceof RalphError) throw error
        return result({ outcome: 'could_not_run' }, faultMessage(error))
      }
      const running = group
      const onStop = (): void => running.end('stopped')
      stop.addEventListener('abort', onStop, { once: true })
      if (stop.aborted) onStop()
      const ended = await running.ended
      stop.removeEventListener('abort', onStop)
      if (ended.hasNoCage === true) throw cageFault(tail.text())
      if (ended.cause === 'stopped') return result({ outcome: 'stopped' })
      if (ended.cause === 'timeout')
        return result({ outcome: 'failed' }, overtimeWords(options.timeoutMs ?? 0))
      const reached = ended.reached === undefined ? '' : `it reached ${ended.reached.join(' and ')}`
      if (ended.exitCode === undefined || ended.cause === 'limits') {
        const by = `ended by ${ended.signal ?? 'a signal'}`
        return result({ outcome: 'failed' }, reached === '' ? by : `${by}, ${reached}`)
      }
      // What a shell answers when there is no such program, or none that may be run: the gate has judged nothing.
      const couldNotRun =
        ended.exitCode === 126 ||
        ended.exitCode === 127 ||
        (ended.exitCode !== 0 && missesTarget(tail.text(), options.absent?.get(command)))
      const outcome = couldNotRun ? 'could_not_run' : ended.exitCode === 0 ? 'passed' : 'failed'
      return result({ outcome, exitCode: ended.exitCode }, outcome === 'passed' ? '' : reached)
    },
  }
}

const tailBytes = 4096
/** Where the failing test is looked for: its line may stand far above the last one. */
const searchedBytes = 512 * 1024
const logBytes = 32 * 1024 * 1024
const lineFeed = 10

/** What ralph itself knows of the end comes before what the gate said. */
function failureIn(output: string, note: string): GateFailure | undefined {
  const found = findFailure(output)
  if (note === '') return found
  const said = found === undefined ? lastLines(output, 5) : [failureSentence(found)]
  return { what: note, message: said }
}

/** Paths as a person in the work tree would write them. */
function inTree(text: string, cwd: string): string {
  return text.replaceAll(`file://${cwd}/`, '').replaceAll(`${cwd}/`, '')
}
