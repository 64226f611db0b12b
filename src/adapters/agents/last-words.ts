// What a program without a protocol says of its provider as it leaves with an error. Tests that it ran say such things, too: of theirs nothing may count.
import type { AgentEnding } from '../../core/event.ts'

/** `stderr` counts; where it is silent, the end of what was said. */
export function endingOfLastWords(stderr: string, said: string): AgentEnding | undefined {
  const words = stderr.trim() === '' ? lastLines(said, 3) : lastLines(stderr, 8)
  const complaint = words.filter((line) => !ofTests.test(line)).join('\n')
  return rules.find(([pattern]) => pattern.test(complaint))?.[1]
}

function lastLines(text: string, most: number): string[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !frame.test(line))
  return lines.slice(-most)
}

/** Of a stack. */
const frame = /^\s+at /
/** A test's verdict, the source that it shows, a server of its own. */
const ofTests =
  /assert|expect|\btests?\b|\bFAIL|not ok|[✗✕×]|^\s*[>❯]?\s*\d+\s*[|│]|localhost|127\.0\.0\.1|::1\b/i
const status = String.raw`\b(?:error|HTTP(?:/[\d.]+)?|status(?: code)?|code)[ :=(]*`

/** Stricter than for a protocol's errors: a loop that waits in vain, or that is sent to log in, is lost for the night. */
const rules: readonly [RegExp, AgentEnding][] = [
  [
    /\b(?:run|type|use) [`'"]?(?:\/login|[\w-]+ (?:auth )?login)\b|\b(?:invalid|incorrect|missing) api[ -]key|api key (?:is )?(?:not valid|invalid|missing)|authentication_?error|credit balance is too low|insufficient_quota/i,
    'auth',
  ],
  [
    new RegExp(
      String.raw`${status}429\b|too many requests|rate[ _-]?limit(?:ed\b|[ _]?(?:error|exceeded|reached|hit))|\bhit (?:your|the) .{0,20}limit|\b(?:usage|hour|daily|weekly|session) limit (?:was )?(?:reached|exceeded)|(?:exceeded|exhausted) your .{0,20}quota|(?<!disk )quota exceeded|resource.?exhausted`,
      'i',
    ),
    'limit',
  ],
  [
    new RegExp(String.raw`${status}(?:529|503)\b|overloaded_error|\b(?:is|currently) overloaded\b`, 'i'),
    'overloaded',
  ],
  [
    /\b(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b|could not resolve host|name resolution|network is unreachable|fetch failed|error sending request/i,
    'offline',
  ],
]
