// What a provider's failure means, from its HTTP status and the error text of the protocol: never from an assistant's prose.
import type { AgentEnding } from '../../core/event.ts'

export function endingOfStatus(status: number): AgentEnding {
  if (status === 401 || status === 403) return 'auth'
  // Paid up or not: nothing that waiting mends.
  if (status === 402) return 'auth'
  if (status === 404) return 'model'
  if (status === 429) return 'limit'
  if (status === 408 || status >= 500) return 'overloaded'
  return 'crash'
}

/**
 * No credit or an unpaid bill: no waiting and no login mends it. Gemini speaks of "plan and billing" at every limit, but then
 * of the quota's window too.
 */
export function isUnpaid(message: string): boolean {
  if (
    /credit balance|insufficient[ _](?:quota|credit|balance|funds)|payment required|out of credits/i.test(
      message,
    )
  )
    return true
  if (/\b(?:status(?: code)?|HTTP|error|code)[ :]*402\b/i.test(message)) return true
  return (
    /billing/i.test(message) &&
    !/retry in|try again|resets?\b|quota metric|resource.?exhausted|per.?(?:minute|day)/i.test(message)
  )
}

/** `message` is the text of an error event, or stderr. */
export function endingOfError(message: string): AgentEnding {
  if (isUnpaid(message)) return 'auth'
  const status = /\b(?:status(?: code)?|HTTP(?:\/[\d.]+)?|error|code|rejected)[ :(]*(\d{3})\b/i.exec(
    message,
  )?.[1]
  const rules: readonly [RegExp, AgentEnding][] = [
    [
      /usage.?limit|rate.?limit|quota|too many requests|resource.?exhausted|hit your .{0,20}limit|(?:hour|daily|weekly|opus|sonnet|session) limit reached/i,
      'limit',
    ],
    [/insufficient|payment/i, 'auth'],
    [
      /not logged in|(?:log|sign) ?in again|unauthori[sz]ed|authenticat|AuthError|invalid (?:api|x-api)[ -]key|api key not valid|api key (?:is )?(?:missing|required)/i,
      'auth',
    ],
    [
      /models?\b.{0,80}(?:not (?:found|exist|supported|available)|does not exist|unknown)|(?:unknown|invalid|unsupported|no such) model/i,
      'model',
    ],
    [
      /overloaded|server is busy|service unavailable|internal server error|high demand|at capacity/i,
      'overloaded',
    ],
    [
      /ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|getaddrinfo|lookup address|stream disconnected|fetch failed|network|connection (?:failed|refused|reset|error)|error sending request|timed out/i,
      'offline',
    ],
  ]
  const byText = rules.find(([pattern]) => pattern.test(message))?.[1]
  if (byText === 'limit' || byText === 'model') return byText
  const byStatus = status === undefined ? 'crash' : endingOfStatus(Number(status))
  return byStatus === 'crash' ? (byText ?? 'crash') : byStatus
}
