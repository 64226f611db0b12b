// Writes the JSON Schemas from the zod schemas; with --check it only says whether they are up to date.
import { readFile, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { publicEventSchema } from '../src/core/event.ts'
import { stateFileSchema } from '../src/core/state-file.ts'
import { configFileSchema } from '../src/config/schema.ts'

const schemas = {
  'loop-state.schema.json': { title: 'ralph loop state, format version 1', schema: stateFileSchema },
  'config.schema.json': { title: 'ralph.yaml', schema: configFileSchema },
  'event.schema.json': { title: 'ralph event, version 1', schema: publicEventSchema },
}

let stale = 0
for (const [name, { title, schema }] of Object.entries(schemas)) {
  const path = new URL(`../schema/${name}`, import.meta.url)
  const text = `${JSON.stringify({ title, ...z.toJSONSchema(schema, { io: 'input' }) }, null, 2)}\n`
  if (process.argv.includes('--check')) {
    if ((await readFile(path, 'utf8').catch(() => '')) === text) continue
    console.error(`schema/${name} is stale: run npm run schemas`)
    stale += 1
  } else await writeFile(path, text)
}
process.exitCode = stale > 0 ? 1 : 0
