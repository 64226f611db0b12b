// What a value of each setting must look like: as a zod schema, and as the sentence that helps whoever got it wrong.
import * as z from 'zod'
import { once } from '../core/once.ts'
import { optionKeys, specOf } from './options.ts'
import { agentNames, durationPattern } from './option.ts'
import type { OptionKind, OptionSpec } from './option.ts'

/** Beyond this a Node timer fires at once instead of late. */
const longestTimerMs = 2 ** 31 - 1
const mostMinutes = Math.floor(longestTimerMs / 60_000)
const mostSeconds = Math.floor(longestTimerMs / 1000)

const line = once(() => z.string().trim().min(1))

const kinds: Record<OptionKind, { readonly schema: () => z.ZodType; readonly wants: string }> = {
  count: { schema: () => z.number().int().nonnegative(), wants: 'a whole number, 0 or more, such as 3' },
  positive: { schema: () => z.number().int().positive(), wants: 'a whole number, 1 or more, such as 10' },
  minutes: {
    schema: () => z.number().positive().max(mostMinutes),
    wants: `minutes as a number above 0 and at most ${String(mostMinutes)}, such as 45 or 0.5, or a time such as 90s, 45m or 1h`,
  },
  minutes_or_off: {
    schema: () => z.number().nonnegative().max(mostMinutes),
    wants: `minutes as a number from 0 to ${String(mostMinutes)}, such as 10 or 0.5, or a time such as 90s, 10m or 1h`,
  },
  seconds: {
    schema: () => z.number().positive().max(mostSeconds),
    wants: `seconds as a number above 0 and at most ${String(mostSeconds)}, such as 60, or a time such as 90s, 2m or 1h`,
  },
  usd: { schema: () => z.number().positive(), wants: 'dollars as a number above 0, such as 5 or 2.50' },
  size: {
    schema: () => z.string().regex(/^\d+(?:\.\d+)?[KMGT]$/),
    wants: 'a size with its unit, such as 500M or 4G',
  },
  text: { schema: () => line(), wants: 'a text that is not empty' },
  url: {
    schema: () => z.url({ protocol: /^https?$/ }),
    wants: 'an address that begins with http:// or https://',
  },
  choice: { schema: () => z.string(), wants: 'one of its words' },
  texts: { schema: () => z.array(line()), wants: 'a text, or a list of texts, none of them empty' },
  pairs: {
    schema: () => z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string()),
    wants: 'KEY=VALUE, where KEY is the name of a variable',
  },
  commands: {
    schema: () => z.record(z.string().trim().min(1), line()),
    wants:
      'a command for each path or glob, such as {"package-lock.json": "npm install --package-lock-only"}',
  },
  agents: {
    schema: () => z.array(z.enum(agentNames)).min(1),
    wants: 'one agent or more, separated by commas',
  },
  folder: { schema: () => z.union([z.literal(true), line()]), wants: 'a folder' },
  switch: { schema: () => z.boolean(), wants: 'true or false' },
  stories: {
    schema: () =>
      z.record(
        z.string().trim().min(1),
        z.strictObject({ verify: z.array(line()).optional(), model: line().optional() }),
      ),
    wants: 'stories by their id, each with verify, model or both, such as {"2": {"verify": ["npm run e2e"]}}',
  },
}

export function schemaOf(spec: OptionSpec): z.ZodType {
  return spec.kind === 'choice' && spec.choices ? z.enum([...spec.choices]) : kinds[spec.kind].schema()
}

/** Goes after "wants". */
export function wantsOf(spec: OptionSpec): string {
  if (spec.kind === 'choice') return `one of ${(spec.choices ?? []).join(', ')}`
  return kinds[spec.kind].wants
}

/** The whole file; ships as schema/config.schema.json, so that editors can complete and check `ralph.yaml`. */
export const configFileSchema = once(() =>
  z.strictObject(
    Object.fromEntries(
      optionKeys.map((key) => {
        const spec = specOf(key)
        return [key, fileSchema(spec).optional().describe(spec.help)]
      }),
    ),
  ),
)

/** In a file a list of one may be written without brackets. */
function fileSchema(spec: OptionSpec): z.ZodType {
  if (spec.kind === 'stories')
    return z.record(
      z.string(),
      z.strictObject({ verify: z.union([line(), z.array(line())]).optional(), model: line().optional() }),
    )
  if (spec.kind === 'minutes' || spec.kind === 'minutes_or_off' || spec.kind === 'seconds')
    return z.union([schemaOf(spec), z.string().regex(durationPattern)])
  if (spec.kind === 'texts') return z.union([line(), schemaOf(spec)])
  if (spec.kind === 'agents') return z.union([z.enum(agentNames), line(), schemaOf(spec)])
  return schemaOf(spec)
}
