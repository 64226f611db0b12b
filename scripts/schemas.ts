// Writes the JSON Schemas, the library's types and the core's shapes from the zod schemas; with --check it only says whether they are up to date.
import { readFile, writeFile } from 'node:fs/promises'
import * as z from 'zod'
import {
  bodySchema,
  envelopeSchema,
  goneFileSchema,
  iterationSchema,
  publicBodies,
  publicEventSchema,
  storySummarySchema,
  totalsSchema,
} from '../src/core/event.ts'
import { stateFileSchema } from '../src/core/state-file.ts'
import { configFileSchema } from '../src/config/schema.ts'
import { errorCodes } from '../src/core/error.ts'
import { typeOf, typesFile } from './types.ts'

const forOthers = (title: string, schema: z.ZodType): object => ({
  title,
  ...z.toJSONSchema(schema, { io: 'input' }),
})

/** As parsed: without unknown fields, so that what fits is what zod would give back. */
const shapeOf = (schema: z.ZodType): object => {
  const { $schema: _, ...shape } = z.toJSONSchema(schema, { io: 'output' })
  return shape
}

const shapes = 'src/core/shapes.json'
const files = {
  'schema/loop-state.schema.json': forOthers('ralph loop state, format version 1', stateFileSchema),
  'schema/config.schema.json': forOthers('ralph.yaml', configFileSchema()),
  'schema/event.schema.json': forOthers('ralph event, version 1', publicEventSchema),
  [shapes]: {
    ...Object.fromEntries(
      bodySchema.options.map((body) => [body.shape.type.value, shapeOf(body.extend(envelopeSchema.shape))]),
    ),
    state_file: shapeOf(stateFileSchema),
  },
}

const settings = z.toJSONSchema(configFileSchema(), { io: 'input' })
const types = 'src/library/types.ts'
const parts = {
  GoneFile: goneFileSchema,
  Iteration: iterationSchema,
  Story: storySummarySchema,
  Totals: totalsSchema,
}
const named = Object.entries(parts).map(
  ([name, part]) => [name, typeOf(z.toJSONSchema(part, { io: 'input' }), new Map())] as const,
)
const names = new Map(named.map(([name, text]) => [text, name]))
const bodies = z.toJSONSchema(z.discriminatedUnion('type', publicBodies), { io: 'input' })
const texts: Record<string, string> = {
  [types]: typesFile({
    LoopEvent: `${typeOf(z.toJSONSchema(envelopeSchema, { io: 'input' }), names)} & (${typeOf(bodies, names)})`,
    LoopState: typeOf(z.toJSONSchema(stateFileSchema, { io: 'input' }), names),
    ...Object.fromEntries(named),
    // How a program shows events is its own business, and a plan is `ralph loop --dry-run`.
    LoopSettings: typeOf(settings, names, ['json', 'no_tui', 'dry_run']),
    ErrorCode: errorCodes.map((code) => `'${code}'`).join(' | '),
  }),
}

/** For programs only: a line for each of them, so that a change shows which one. */
const inLines = (content: object): string => {
  const entries = Object.entries(content).map(
    ([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  )
  return `{\n${entries.join(',\n')}\n}\n`
}

for (const [name, content] of Object.entries(files))
  texts[name] = name === shapes ? inLines(content) : `${JSON.stringify(content, null, 2)}\n`

let stale = 0
for (const [name, text] of Object.entries(texts)) {
  const path = new URL(`../${name}`, import.meta.url)
  if (process.argv.includes('--check')) {
    if ((await readFile(path, 'utf8').catch(() => '')) === text) continue
    console.error(`${name} is stale: run npm run schemas`)
    stale += 1
  } else await writeFile(path, text)
}
process.exitCode = stale > 0 ? 1 : 0
