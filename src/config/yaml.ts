// The parser of YAML, imported where a file is there to parse: it takes longer to load than most commands run.
import { isNode, isMap, isScalar, LineCounter, parseDocument } from 'yaml'

export { parse } from 'yaml'

/** `:line:column` of a setting's name or value, as terminals and editors open it; empty where that cannot be told. Of JSON, too. */
export function placeOf(text: string, name: string, what: 'name' | 'value'): string {
  const lineCounter = new LineCounter()
  const { contents } = parseDocument(text, { logLevel: 'silent', lineCounter })
  const pairs = isMap(contents) ? contents.items : []
  // Of two with one name the last is the one that is one too many.
  const pair = pairs.findLast(({ key }) => isScalar(key) && String(key.value) === name)
  const node: unknown = what === 'name' ? pair?.key : (pair?.value ?? pair?.key)
  const start = isNode(node) ? node.range?.[0] : undefined
  if (start === undefined) return ''
  const { line, col } = lineCounter.linePos(start)
  return `:${String(line)}:${String(col)}`
}
