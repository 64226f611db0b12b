// TypeScript from a JSON Schema, as far as ours go: the library's types need no package that a user would have to install.
import * as z from 'zod'

const schema = z.looseObject({
  type: z.string().optional(),
  const: z.union([z.string(), z.number(), z.boolean()]).optional(),
  enum: z.array(z.string()).optional(),
  description: z.string().optional(),
  get oneOf() {
    return z.array(schema).optional()
  },
  get anyOf() {
    return z.array(schema).optional()
  },
  get items() {
    return schema.optional()
  },
  get properties() {
    return z.record(z.string(), schema).optional()
  },
  required: z.array(z.string()).optional(),
  get additionalProperties() {
    return z.union([z.boolean(), schema]).optional()
  },
})
type Schema = z.infer<typeof schema>

/** What stands in several places has a name there: its text, by which it is known. */
export type Names = ReadonlyMap<string, string>

/** `without`: properties of the schema itself that are left out. */
export function typeOf(json: unknown, names: Names, without: readonly string[] = []): string {
  const parsed = schema.parse(json)
  const textOf = (part: Schema): string => {
    const text = wholeOf(part, textOf)
    return part === parsed ? text : (names.get(text) ?? text)
  }
  const own = Object.entries(parsed.properties ?? {}).filter(([name]) => !without.includes(name))
  return parsed.properties === undefined
    ? textOf(parsed)
    : wholeOf({ ...parsed, properties: Object.fromEntries(own) }, textOf)
}

function wholeOf(part: Schema, textOf: (part: Schema) => string): string {
  const several = part.oneOf ?? part.anyOf
  if (several !== undefined) {
    const texts = [...new Set(several.map(textOf))]
    // Beside words that are known any other: editors offer those all the same.
    const isOpen = texts.includes('string') && texts.some((text) => text.startsWith("'"))
    return texts
      .map((text) => (isOpen && text === 'string' ? '(string & Record<never, never>)' : text))
      .join(' | ')
  }
  if (part.const !== undefined) return quoted(part.const)
  if (part.enum !== undefined) return part.enum.map(quoted).join(' | ')
  if (part.type === 'array') {
    const item = part.items === undefined ? 'unknown' : textOf(part.items)
    return /^\w+$/.test(item) ? `readonly ${item}[]` : `readonly (${item})[]`
  }
  if (part.type === 'object') return objectOf(part, textOf)
  if (part.type === 'integer' || part.type === 'number') return 'number'
  if (part.type === 'string' || part.type === 'boolean') return part.type
  // What is not said may be anything.
  if (part.type === undefined) return 'unknown'
  throw new Error(`no type for ${JSON.stringify(part)}`)
}

function objectOf(
  { properties, required = [], additionalProperties: more }: Schema,
  textOf: (part: Schema) => string,
): string {
  const of = typeof more === 'object' ? textOf(more) : 'unknown'
  if (properties === undefined) return `Readonly<Record<string, ${of}>>`
  const lines = Object.entries(properties).flatMap(([name, part]) => {
    const isThere = required.includes(name)
    const line = `readonly ${name}${isThere ? '' : '?'}: ${textOf(part)}${isThere ? '' : ' | undefined'}`
    return [...(part.description === undefined ? [] : [`/** ${part.description} */`]), line]
  })
  return `{\n${lines.join('\n').replaceAll(/^/gm, '  ')}\n}`
}

function quoted(value: string | number | boolean): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}

export function typesFile(types: Readonly<Record<string, string>>): string {
  const head =
    "// What the library tells and takes, by `npm run schemas` from the program's own schemas: for people who use it without zod.\n"
  return `${head}\n${Object.entries(types)
    .map(([name, text]) => `export type ${name} = ${text}\n`)
    .join('\n')}`
}
