// Writes the JSON Schemas and the core's shapes from the zod schemas; with --check it only says whether they are up to date.
import { readFile, writeFile } from 'node:fs/promises'
import * as z from 'zod'
import { bodySchema, envelopeSchema, publicEventSchema } from '../src/core/event.ts'
import { stateFileSchema } from '../src/core/state-file.ts'
import { configFileSchema } from '../src/config/schema.ts'

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

/** For programs only: a line for each of them, so that a change shows which one. */
const inLines = (content: object): string => {
  const entries = Object.entries(content).map(
    ([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  )
  return `{\n${entries.join(',\n')}\n}\n`
}

let stale = 0
for (const [name, content] of Object.entries(files)) {
  const path = new URL(`../${name}`, import.meta.url)
  const text = name === shapes ? inLines(content) : `${JSON.stringify(content, null, 2)}\n`
  if (process.argv.includes('--check')) {
    if ((await readFile(path, 'utf8').catch(() => '')) === text) continue
    console.error(`${name} is stale: run npm run schemas`)
    stale += 1
  } else await writeFile(path, text)
}
process.exitCode = stale > 0 ? 1 : 0
