// docs/config.md and docs/events.md say what the code says, and the other way round.
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { agentKinds } from '../../src/adapters/agents/table.ts'
import { agentNames } from '../../src/config/option.ts'
import { flagOf, isFileOnly, optionKeys, specOf, variableOf } from '../../src/config/options.ts'
import type { OptionKey } from '../../src/config/options.ts'
import { configFileSchema } from '../../src/config/schema.ts'
import { publicEventSchema } from '../../src/core/event.ts'
import { publicEventTypes } from '../../src/core/public-events.ts'

const page = (name: string) => readFile(new URL(`../../docs/${name}`, import.meta.url), 'utf8')

function row(key: OptionKey): string {
  const spec = specOf(key)
  const flag = [flagOf(key), spec.choices && spec.kind === 'choice' ? spec.choices.join('\\|') : spec.value]
  const variable = isFileOnly(key) ? '(file only)' : variableOf(key)
  if (isFileOnly(key)) flag.splice(0, 2, '(file only)')
  const usual = spec.defaultText ?? (typeof spec.default === 'object' ? 'none' : String(spec.default))
  return `| \`${flag.filter(Boolean).join(' ')}\` | \`${key}\` | \`${variable}\` | ${usual.replace('false', 'off')} | ${spec.help} |`
}

describe('docs', () => {
  it('docs/config.md holds the table of settings as it is in the code', async () => {
    const table = (await page('config.md')).split('\n').filter((line) => line.startsWith('| `'))
    expect(table).toEqual(optionKeys.map(row))
  })

  it('docs/events.md has a heading for each public event, and for no other', async () => {
    const headings = [...(await page('events.md')).matchAll(/^### `(.+)`$/gm)].map(([, type]) => type)
    expect(headings).toEqual(publicEventTypes)
  })

  it('docs/events.md names every field of each public event', async () => {
    const common = new Set(['v', 'seq', 'time', 'change_id', 'type'])
    const sections = (await page('events.md')).split(/^### /m)
    const missing = publicEventSchema.options.flatMap(({ shape }) => {
      const type = z.literal(publicEventTypes).parse(shape.type.value)
      const section = sections.find((text) => text.startsWith(`\`${type}\``)) ?? ''
      const fields = Object.keys(shape).filter((field) => !common.has(field))
      return fields.filter((field) => !section.includes(`\`${field}\``)).map((field) => `${type}.${field}`)
    })
    expect(missing).toEqual([])
  })

  it('every agent that can run can be named, and the other way round', () => {
    expect([...agentNames]).toEqual(Object.keys(agentKinds))
  })

  it('the schema of the file can be shipped as JSON Schema and knows every setting', () => {
    const schema = z.toJSONSchema(configFileSchema())
    expect(Object.keys(schema.properties ?? {})).toEqual([...optionKeys])
    expect(schema.additionalProperties).toBe(false)
  })
})
