// Words and numbers as people read them: cleaned of control characters, clipped to a width, rounded.

/** Escape sequences first, then what is left of C0, DEL and C1: an agent's text must not move the user's cursor. */
const escapes = /\u001B(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001B]*(?:\u0007|\u001B\\)?|[ -/]*[0-~])/g
const controls = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g

const anyControl = new RegExp(controls, '')

/** Keeps line breaks and tabs. */
export function clean(text: string): string {
  // Most have none: an escape sequence begins with one, and so does a CRLF.
  if (!anyControl.test(text)) return text
  return text.replaceAll('\r\n', '\n').replaceAll(escapes, '').replaceAll(controls, '')
}

export function oneLine(text: string): string {
  return clean(text).replaceAll(/\s+/g, ' ').trim()
}

/** The first line that says something, and how many more there are. */
export function excerpt(text: string, width: number): string {
  const lines = clean(text)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const more = lines.length - 1
  const rest = more > 0 ? ` (+${String(more)} line${more === 1 ? '' : 's'})` : ''
  return clip(lines[0] ?? '', width) + rest
}

/** At most `width` cells; what is cut is shown as an ellipsis. */
export function clip(text: string, width: number): string {
  if (text.length <= width && isNarrow(text)) return text
  let cells = 0
  /** Where the last character ends that leaves room for the ellipsis. */
  let room = 0
  let at = 0
  for (const char of text) {
    cells += cellsOf(char)
    at += char.length
    if (cells > width) return `${text.slice(0, room).trimEnd()}…`
    if (cells < width) room = at
  }
  return text
}

/** The same for a line with colours of ours: they take no room, and all of them stay, so that none is left open. */
export function clipPainted(line: string, width: number): string {
  const plain = clean(line)
  if (widthOf(plain) <= width) return line
  let rest = clip(plain, width)
  return line.replaceAll(/\u001B\[[0-9;]*m|[^\u001B]+/g, (part) => {
    if (part.startsWith('\u001B')) return part
    const kept = rest.slice(0, part.length)
    rest = rest.slice(part.length)
    return kept
  })
}

/** Terminal cells, of a text without escape sequences. */
export function widthOf(text: string): number {
  if (isNarrow(text)) return text.length
  let cells = 0
  for (const char of text) cells += cellsOf(char)
  return cells
}

const combining = /^(?:\p{M}|[\u200B-\u200F])$/u
const wide =
  /^[\u1100-\u115F\u231A\u231B\u23E9-\u23EC\u23F0\u23F3\u25FD\u25FE\u2614\u2615\u2648-\u2653\u267F\u2693\u26A1\u26AA\u26AB\u26BD\u26BE\u26C4\u26C5\u26CE\u26D4\u26EA\u26F2\u26F3\u26F5\u26FA\u26FD\u2705\u270A\u270B\u2728\u274C\u274E\u2753-\u2755\u2757\u2795-\u2797\u27B0\u27BF\u2B1B\u2B1C\u2B50\u2B55\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE10-\uFE19\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{16FE0}-\u{18CFF}\u{1B000}-\u{1B2FF}\u{1F004}\u{1F0CF}\u{1F18E}\u{1F191}-\u{1F19A}\u{1F200}-\u{1F265}\u{1F300}-\u{1F320}\u{1F32D}-\u{1F335}\u{1F337}-\u{1F37C}\u{1F37E}-\u{1F393}\u{1F3A0}-\u{1F3CA}\u{1F3CF}-\u{1F3D3}\u{1F3E0}-\u{1F3F0}\u{1F3F4}\u{1F3F8}-\u{1F43E}\u{1F440}\u{1F442}-\u{1F4FC}\u{1F4FF}-\u{1F53D}\u{1F54B}-\u{1F54E}\u{1F550}-\u{1F567}\u{1F57A}\u{1F595}\u{1F596}\u{1F5A4}\u{1F5FB}-\u{1F64F}\u{1F680}-\u{1F6C5}\u{1F6CC}\u{1F6D0}-\u{1F6D2}\u{1F6D5}-\u{1F6D7}\u{1F6DC}-\u{1F6DF}\u{1F6EB}\u{1F6EC}\u{1F6F4}-\u{1F6FC}\u{1F7E0}-\u{1F7EB}\u{1F7F0}\u{1F90C}-\u{1F93A}\u{1F93C}-\u{1F945}\u{1F947}-\u{1F9FF}\u{1FA70}-\u{1FAFF}\u{20000}-\u{3FFFD}]$/u

/** One cell each: before the first that combines, and what ralph itself draws with. */
const narrow =
  /^[\u0000-\u02FF\u2010-\u2027\u2030-\u205E\u2190-\u2319\u2500-\u25FC\u2706-\u2709\u270C-\u2727\u2800-\u28FF]*$/

function isNarrow(text: string): boolean {
  return narrow.test(text)
}

function cellsOf(char: string): number {
  if (char < '\u0300') return 1
  if (combining.test(char)) return 0
  return wide.test(char) ? 2 : 1
}

/** 950 ms, 12.3 s, 4m 05s, 1h 02m. */
export function duration(ms: number): string {
  if (ms < 1000) return `${String(Math.round(ms))} ms`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${(ms / 1000).toFixed(1).replace(/\.0$/, '')} s`
  const pad = (value: number): string => String(value).padStart(2, '0')
  if (seconds < 3600) return `${String(Math.floor(seconds / 60))}m ${pad(seconds % 60)}s`
  const minutes = Math.round(seconds / 60)
  return `${String(Math.floor(minutes / 60))}h ${pad(minutes % 60)}m`
}

/** 950, 12.3k, 4.56M. */
export function tokens(count: number): string {
  if (count < 1000) return String(count)
  if (count < 999_950) return `${(count / 1000).toFixed(1)}k`
  return `${(count / 1_000_000).toFixed(2)}M`
}

export interface SpentTokens {
  readonly tokens: number
  readonly tokens_estimated?: boolean | undefined
}

/** A guess keeps its `~`, in sums too; a guess of nothing is no figure at all. */
export function tokenWord({ tokens: used, tokens_estimated: estimated = false }: SpentTokens): string {
  if (estimated && used === 0) return '?'
  return `${estimated ? '~' : ''}${tokens(used)}`
}

export function tokenWords(spent: SpentTokens): string {
  const word = tokenWord(spent)
  return word === '?' ? 'tokens unknown' : `${word} tokens`
}

/** Below a cent it still says that it was not free. */
export function usd(cost: number): string {
  return cost > 0 && cost < 0.01 ? '<$0.01' : `$${cost.toFixed(2)}`
}

export function shortHash(commit: string): string {
  return commit.slice(0, 7)
}

/** The clock's part of a local ISO time. */
export function clockTime(stamp: string): string {
  return stamp.slice(11, 19)
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${String(count)} ${count === 1 ? one : many}`
}

/** What was joined by semicolons, as sentences. What is to be copied stays as it is and ends its line: no stop behind a command, no break in a name. */
export function sentences(text: string): string {
  const parts = text.split(joint).map((part) => {
    const said = opener.test(part) ? `${part.slice(0, 1).toUpperCase()}${part.slice(1)}` : part
    if (/: (?:git|ralph|mv) \S/.test(said)) return `${said}\n`
    return /[.!?:`]$/.test(said) ? `${said} ` : `${said}. `
  })
  return parts.join('').trimEnd()
}

const openers = "(?:the|back|everything|nothing|what|not|no|among|as|its?|also|your|git's)"
const opener = new RegExp(String.raw`^${openers}\b`)
const joint = new RegExp(String.raw`; (?=${openers} |\`ralph )`)

/** A message and what to do about it, as two sentences. */
export function withHint(message: string, hint: string): string {
  if (hint === '') return message
  return /[.!?:…]$/.test(message) ? `${message} ${hint}` : `${message}. ${hint}`
}

/** Nobody counts the first second. */
export function ago(stamp: string, nowMs: number): string {
  return nowMs - Date.parse(stamp) < 1000 ? 'just now' : `${since(stamp, nowMs)} ago`
}

export function since(stamp: string, nowMs: number): string {
  return duration(Math.max(0, Math.floor((nowMs - Date.parse(stamp)) / 1000) * 1000))
}
