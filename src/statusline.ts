// `ralph statusline` by a door of its own: a status bar draws it every few seconds, and it loads nothing but this.
import { fstatSync, readFileSync } from 'node:fs'
import { statusLineOf } from './compose/status-line.ts'
import { isRecord, readJson } from './core/json.ts'
import { legible } from './ui/vocabulary.ts'

/** However long a host may take to write what it has begun to write. */
const patienceMs = 100

export function start({ isJson, folder }: { readonly isJson: boolean; readonly folder?: string }): void {
  const show = (from: string): void => {
    const line = statusLineOf(from, Date.now())
    const shown = isJson ? JSON.stringify(line) : legible(line.text, process.env)
    process.stdout.on('error', () => process.exit(0))
    process.stdout.write(shown === '' ? '' : `${shown}\n`, () => process.exit(0))
  }
  if (folder !== undefined) show(folder)
  else withInput((text) => show(folderIn(text) ?? folderHere()))
}

/** Claude Code says on stdin where its session works. */
function folderIn(text: string): string | undefined {
  const told = readJson(text)
  const workspace = isRecord(told) ? told['workspace'] : undefined
  const folder = isRecord(workspace) ? workspace['current_dir'] : undefined
  return typeof folder === 'string' && folder !== '' ? folder : undefined
}

function folderHere(): string {
  try {
    return process.cwd()
  } catch {
    // Deleted under the terminal: there is no loop in it.
    return '/'
  }
}

/** What is there by now. Of nobody who only might write is waited for: tmux leaves stdin open and silent. */
function withInput(use: (text: string) => void): void {
  const kind = kindOfInput()
  if (kind !== 'pipe') return use(kind === 'file' ? readFileSync(0, 'utf8') : '')
  let text = ''
  let isUsed = false
  const go = (): void => {
    if (isUsed) return
    isUsed = true
    use(text)
  }
  process.stdin.setEncoding('utf8')
  process.stdin.on('error', go)
  process.stdin.on('end', go)
  process.stdin.on('data', (chunk: string) => {
    text += chunk
    if (text.length > 1_000_000 || readJson(text) !== undefined) go()
  })
  // The first turn asks the system what there is to read, the second has heard its answer.
  setImmediate(() => setImmediate(() => (text === '' ? go() : setTimeout(go, patienceMs))))
}

function kindOfInput(): 'pipe' | 'file' | 'none' {
  try {
    const stats = fstatSync(0)
    return stats.isFIFO() || stats.isSocket() ? 'pipe' : stats.isFile() ? 'file' : 'none'
  } catch {
    // Closed.
    return 'none'
  }
}
