// `ralph init`: shows what was found, asks on a terminal, and has the files written.
import { starterFile } from '../../config/starter.ts'
import { RalphError } from '../../core/error.ts'
import type { App, Said, Setup } from '../app.ts'
import { isTerminal } from '../io.ts'
import { ask } from '../print/ask.ts'
import { folded } from '../print/layout.ts'
import { oneLine } from '../print/text.ts'
import type { Context } from './context.ts'

export interface InitOptions {
  readonly yes: boolean
  readonly mcp: boolean
  readonly json: boolean
}

export async function setUp(
  { observe, control }: App,
  context: Context,
  { yes, mcp, json }: InitOptions,
): Promise<Said> {
  const { io } = context
  const found = await observe.setup(mcp)
  const usable = found.gates.flatMap(({ command, problem }) => (problem === undefined ? [command] : []))
  const isAsked = !yes && !json && isTerminal(io.stdin) && isTerminal(io.stdout)
  const say = (...lines: readonly string[]): void => {
    if (!json) io.stdout.write(`${lines.map((line) => folded(line, io.stdout.columns)).join('\n')}\n`)
  }
  if (found.isThere) {
    const said = await control.init({ agent: '', gates: [], otherGates: [], mcp })
    return { ...said, message: [said.message, ...otherWays(found, true)].join('\n') }
  }
  say(...foundLines(found))
  const gates = isAsked && usable.length > 0 ? await askGates(context, usable) : usable
  if (gates === undefined) return nothing
  const others = found.gates.map(({ command }) => command).filter((command) => !gates.includes(command))
  const request = { agent: found.agent, gates, otherGates: others }
  const text = starterFile(request)
  // The comments are for whoever opens the file: here they would push the question's own lines off the screen.
  const set = text.split('\n').filter((line) => /^\s*[^#\s]/.test(line))
  say(
    '',
    `${oneLine(found.path)}, with the settings that are often used as comments${set.length === 0 ? '' : ', and:'}`,
    ...set.map((line) => `  ${line}`),
    '',
  )
  if (!yes && !isAsked) {
    throw new RalphError('usage', `There is no terminal on which to ask whether to write ${found.path}.`, {
      hint: 'Nothing was written. To write it without a question, add: --yes',
    })
  }
  if (isAsked && !(await agrees(context, `Write ${oneLine(found.path)}? [Y/n]`, true))) return nothing
  const offered = found.mcp.find(({ file }) => file !== undefined)?.file
  const mayWrite = offered !== undefined && isAsked && !mcp
  const wantsMcp =
    mcp ||
    (mayWrite &&
      (await agrees(
        context,
        `Write ${oneLine(offered)} too, so that Claude Code can look at the loops here? [y/N]`,
        false,
      )))
  const said = await control.init({ ...request, mcp: wantsMcp })
  return { ...said, message: [said.message, ...otherWays(found, wantsMcp)].join('\n') }
}

function otherWays({ mcp }: Setup, isWritten: boolean): readonly string[] {
  return mcp
    .filter(({ file }) => !isWritten || file === undefined)
    .map(({ agent, command }) => `For ${agent}, to look at the loops here (MCP): ${command}`)
}

const nothing: Said = { message: 'Nothing was written.', data: { written: [] } }

function foundLines({ agent, agents, gates }: Setup): readonly string[] {
  const usable = gates.filter(({ problem }) => problem === undefined)
  const missing = gates.filter(({ problem }) => problem !== undefined)
  const others = agents.filter(({ name }) => name !== agent).map(({ name }) => name)
  const login = agents.find(({ name }) => name === agent)?.login ?? ''
  const more = others.length === 0 ? '' : `; installed, too: ${others.join(', ')}`
  return [
    agent === ''
      ? 'Agent: none of claude, codex, opencode and gemini is on PATH'
      : `Agent: ${agent}${login === '' ? '' : ` (${oneLine(login)})`}${more}`,
    gates.length === 0 ? "Gates: none found, so the agent's word alone would count" : 'Gates found:',
    ...usable.map(({ command }, index) => `  ${index + 1}  ${oneLine(command)}`),
    ...missing.map(
      ({ command, problem = '' }) => `  -  ${oneLine(command)}  (left out: ${oneLine(problem)})`,
    ),
  ]
}

/** Undefined: nobody answered. */
function askGates(
  { io, readerGone }: Context,
  gates: readonly string[],
): Promise<readonly string[] | undefined> {
  return ask(
    io,
    {
      lines: [],
      prompt: 'Use them: all, none, or numbers such as 1 2? [all] ',
      interpret: (word) => chosen(word, gates),
      again: 'please type all, none, or some of the numbers: ',
    },
    readerGone,
  )
}

function chosen(word: string, gates: readonly string[]): readonly string[] | undefined {
  if (/^(?:|a|all|y|yes)$/.test(word)) return gates
  if (/^(?:none|n|no)$/.test(word)) return []
  const numbers = word.split(/[\s,]+/).map(Number)
  return numbers.every((n) => gates[n - 1] !== undefined)
    ? gates.filter((_, index) => numbers.includes(index + 1))
    : undefined
}

async function agrees({ io, readerGone }: Context, question: string, onEnter: boolean): Promise<boolean> {
  const lines = folded(question, io.stdout.columns).split('\n')
  const answer = await ask(
    io,
    {
      lines: lines.slice(0, -1),
      prompt: `${lines.at(-1) ?? ''} `,
      interpret: (word) =>
        word === '' ? onEnter : /^(?:y|yes)$/.test(word) ? true : /^(?:n|no)$/.test(word) ? false : undefined,
      again: 'please type y or n: ',
    },
    readerGone,
  )
  return answer ?? false
}
