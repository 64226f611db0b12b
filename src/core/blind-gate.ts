// Gates that pass whatever they find, as far as their words show it: the loop would call done what nothing has checked.

/** One sentence for each. */
export function blindGates(gates: readonly string[]): readonly string[] {
  return gates.flatMap((gate) => {
    const why = whyBlind(gate)
    return why === undefined ? [] : [`the gate \`${gate}\` cannot fail: ${why}`]
  })
}

/** Undefined too where only a shell could tell. `true` alone is somebody's word, and not meant here. */
export function whyBlind(gate: string): string | undefined {
  const words = bare(gate)
  if (words === '') return 'it is nothing but a comment'
  if (/(^|[^&|>])&$/.test(words)) return 'it ends with &, so nobody waits for how its program ends'
  const [, end] = /(?:\|\||;|\n)\s*(true|:|exit 0)$/.exec(words) ?? []
  if (end !== undefined) return `it ends with \`${end}\`, whatever was before that`
  // In a subshell or a function a pipe may be asked for its parts.
  if (/[(){}`]|\bpipefail\b/.test(words)) return undefined
  const last = words.split(/&&|\|\||[;\n]/).at(-1) ?? ''
  const [, program] = /\|&?\s*(\w+)[^|]*$/.exec(last) ?? []
  return program === undefined || !passing.has(program)
    ? undefined
    : `a pipe ends as its last program does, and \`${program}\` is content with everything; to have the others count: bash -c 'set -o pipefail; …'`
}

/** Without comments, and without what is in quotes. */
function bare(gate: string): string {
  return gate
    .replaceAll(/\\[^]|'[^']*'|"(?:\\[^]|[^"\\])*"/g, 'x')
    .replaceAll(/(^|[\s;&|])#.*$/gm, '$1')
    .trim()
}

const passing: ReadonlySet<string> = new Set([
  'cat',
  'column',
  'head',
  'less',
  'more',
  'nl',
  'sort',
  'tail',
  'tee',
  'tr',
  'ts',
  'uniq',
])
