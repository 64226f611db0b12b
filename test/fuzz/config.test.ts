// Config files: any bytes are settings, or an error of ours that names the file; never a crash, a hang or a full memory.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { RalphError } from '../../src/core/error.ts'
import { anyBytes, isUnspoilt, jsonOf, seeded, settings, twisted, wounded } from './foreign.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ralph-fuzz-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const good = {
  max_retries: 3,
  verify: ['npm test', 'true'],
  agent: 'claude',
  model: 'x',
  agent_env: { A: '1' },
  iteration_timeout: 1.5,
  on_complete: 'keep',
  worktree: true,
  max_cost: 2,
  story: ['1'],
  stories: { '2': { verify: ['x'], model: 'm' } },
  json: false,
}
const yaml = Buffer.from(
  'max_retries: 3\nverify:\n  - npm test\n  - "true"\nagent: claude\nagent_env: { A: "1", B: 2 }\nworktree: true\nmax_cost: 2.5\n',
)

/** Undefined: it was taken. */
async function read(name: string, bytes: Buffer | string): Promise<string | undefined> {
  writeFileSync(join(folder, name), bytes)
  try {
    await loadConfig({ flags: {}, env: { HOME: folder }, projectFolder: folder })
    return undefined
  } catch (error) {
    if (!(error instanceof RalphError)) throw error
    return error.message
  } finally {
    rmSync(join(folder, name))
  }
}

describe('fuzz: config files', () => {
  test(`ralph.yaml: settings, or an error that names the file ${seeded}`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyBytes, wounded([yaml])), async (bytes) => {
        expect((await read('ralph.yaml', bytes)) ?? folder).toContain(folder)
        expect(isUnspoilt()).toBe(true)
      }),
      settings(2),
    )
  })

  test(`ralph.json: every setting of every type ${seeded}`, async () => {
    await fc.assert(
      fc.asyncProperty(twisted([good]), async (value) => {
        expect((await read('ralph.json', jsonOf(value))) ?? folder).toContain(folder)
      }),
      settings(2),
    )
  })

  test.each([
    ['a list that holds itself', 'verify: &a [*a]\n'],
    ['a map that holds itself', 'agent_env: &a { A: *a }\n'],
    [
      'a billion laughs',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghij'
        .split('')
        .map(
          (name, index) =>
            `${name}: &${name} [${Array.from({ length: 9 }, () => `*${'abcdefghij'[index]}`).join(',')}]\n`,
        )
        .join('')}`,
    ],
    ['a nesting deeper than the stack', `verify: ${'['.repeat(20_000)}${']'.repeat(20_000)}`],
    ['a nesting of maps deeper than the stack', `verify: ${'{a: '.repeat(12_000)}1${'}'.repeat(12_000)}`],
    ['prototype names', '__proto__: { polluted: true }\n'],
    ['merged prototype names', 'agent_env: { <<: { __proto__: { polluted: true } } }\n'],
    ['a tag of another language', 'verify: !!js/function "function () { throw 1 }"\n'],
    ['10 MB of one line', `model: ${'x'.repeat(10 * 1024 * 1024)}\n`],
    ['2 MB of keys', Array.from({ length: 100_000 }, (_, index) => `key_${index}: 1\n`).join('')],
  ])('ralph.yaml with %s', async (_name, text) => {
    expect((await read('ralph.yaml', text)) ?? folder).toContain(folder)
    expect(isUnspoilt()).toBe(true)
  })

  test('ralph.json with a nesting deeper than the stack', async () => {
    expect(await read('ralph.json', `{"verify":${'['.repeat(30_000)}${']'.repeat(30_000)}}`)).toContain(
      folder,
    )
  })
})
