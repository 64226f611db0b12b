// Which of several sources of a setting counts, and what a wrong one says.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import type { RawFlags, SettingEntry } from '../../src/config/load.ts'
import { flagOf, optionKeys, specOf, variableOf } from '../../src/config/options.ts'
import type { OptionKey } from '../../src/config/options.ts'
import { RalphError } from '../../src/core/error.ts'

let root: string
let project: string
let home: string

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'ralph-config-'))
  project = join(root, 'project')
  home = join(root, 'xdg')
  await mkdir(project)
  await mkdir(join(home, 'ralph'), { recursive: true })
})
afterEach(() => rm(root, { recursive: true, force: true }))

const load = (flags: RawFlags = {}, env: NodeJS.ProcessEnv = {}) =>
  loadConfig({ flags, env: { XDG_CONFIG_HOME: home, ...env }, projectFolder: project })

const projectFile = (text: string, name = 'ralph.yaml') => writeFile(join(project, name), text)
const userFile = (text: string) => writeFile(join(home, 'ralph', 'ralph.yaml'), text)

async function entry(
  key: OptionKey,
  flags: RawFlags = {},
  env: NodeJS.ProcessEnv = {},
): Promise<SettingEntry> {
  const { entries } = await load(flags, env)
  const found = entries.find((candidate) => candidate.key === key)
  if (found === undefined) throw new Error(`no entry for ${key}`)
  return found
}

async function refusal(flags: RawFlags = {}, env: NodeJS.ProcessEnv = {}): Promise<RalphError> {
  const error: unknown = await load(flags, env).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof RalphError)) throw new Error(`expected a RalphError, got ${String(error)}`)
  expect({ code: error.code, exit: error.exitCode }).toEqual({ code: 'config', exit: 2 })
  return error
}

describe('order of sources', () => {
  it('flag wins over variable over project file over user file over default, and says so', async () => {
    expect(await entry('max_retries')).toMatchObject({ value: 3, origin: 'default' })
    await userFile('max_retries: 4')
    expect(await entry('max_retries')).toMatchObject({
      value: 4,
      origin: 'user',
      where: join(home, 'ralph', 'ralph.yaml'),
    })
    await projectFile('max_retries: 5')
    expect(await entry('max_retries')).toMatchObject({
      value: 5,
      origin: 'project',
      where: join(project, 'ralph.yaml'),
    })
    const env = { RALPH_MAX_RETRIES: '6' }
    expect(await entry('max_retries', {}, env)).toMatchObject({
      value: 6,
      origin: 'variable',
      where: 'RALPH_MAX_RETRIES',
    })
    expect(await entry('max_retries', { max_retries: '0' }, env)).toMatchObject({
      value: 0,
      origin: 'flag',
      where: '--max-retries',
    })
  })

  it('a setting whose default depends on the change has no value, and says how it comes about', async () => {
    const found = await entry('max_iterations')
    expect('value' in found).toBe(false)
    expect(found.where).toContain('open stories x (1 + max retries)')
    expect((await load()).config.max_iterations).toBeUndefined()
  })

  it('an empty variable is no value', async () => {
    expect(await entry('max_retries', {}, { RALPH_MAX_RETRIES: '' })).toMatchObject({ origin: 'default' })
  })

  it('a wrong line in the user file is refused even where a flag overrides it', async () => {
    await userFile('max_retries: many')
    expect((await refusal({ max_retries: '1' })).message).toContain('max_retries in')
  })

  it('RALPH_STORY of an outer loop is not taken for --story; alone it is', async () => {
    expect((await load({}, { RALPH_STORY: '2' })).config.story).toEqual(['2'])
    expect((await load({}, { RALPH_STORY: '2', RALPH_RUN_ID: 'r1' })).config.story).toEqual([])
  })
})

describe('files', () => {
  it('every setting can be written in the project file, by its name or by its flag', async () => {
    await projectFile(
      [
        'max-retries: 0',
        'iteration_timeout: 0.5',
        'verify: npm test',
        'story: ["1", 2]',
        'agent: claude,codex',
        'agent_env: { PORT: 8080, NAME: x y }',
        'worktree: true',
        'no_tui: true',
        'webhook: https://example.org/hook',
        'stories: { 2: { verify: npm run e2e }, demo/3: { verify: [a, b], model: opus } }',
        'prompt_append: "one\\ntwo"',
        'notify: off',
      ].join('\n'),
    )
    expect((await load()).config).toMatchObject({
      max_retries: 0,
      iteration_timeout: 0.5,
      verify: ['npm test'],
      story: ['1', '2'],
      agent: ['claude', 'codex'],
      agent_env: { PORT: '8080', NAME: 'x y' },
      worktree: true,
      no_tui: true,
      webhook: 'https://example.org/hook',
      stories: { '2': { verify: ['npm run e2e'] }, 'demo/3': { verify: ['a', 'b'], model: 'opus' } },
      prompt_append: 'one\ntwo',
      notify: false,
    })
  })

  it('ralph.json serves as well; both at once are refused', async () => {
    await projectFile('{"checkpoint":"stash"}', 'ralph.json')
    expect((await load()).config.checkpoint).toBe('stash')
    await projectFile('checkpoint: branch')
    expect((await refusal()).message).toContain('ralph reads only one')
  })

  it('an empty file, or one with comments only, sets nothing', async () => {
    await projectFile('# nothing yet\n')
    expect((await load()).config.max_retries).toBe(3)
  })

  it('an unknown key names the nearest real one', async () => {
    await projectFile('max_retires: 5')
    const error = await refusal()
    expect(error.message).toContain('unknown setting "max_retires"')
    expect(error.hint).toBe('Did you mean max_retries?')
  })

  it.each([
    ['max_retries: 1\nmax_retries: 2', 'not valid YAML'],
    ['max_retries: 1\nmax-retries: 2', 'is given twice'],
    ['- a\n- b', 'must hold settings'],
    ['max_retries: [', 'not valid YAML'],
    ['max_retries:', 'must be a whole number, 0 or more, such as 3, not nothing'],
    ['max_retries: .nan', 'must be a whole number'],
    ['max_retries: !!js/function "() => 1"', 'must be a whole number'],
    ['verify: ["ok", ""]', 'none of them empty'],
    ['story: 1.10', 'not 1.1'],
    ['stories: ["2"]', 'must be stories by their id'],
    ['stories: { "2": { gate: x } }', 'must be stories by their id'],
    ['stories: { "2": { verify: "" } }', 'must be stories by their id'],
  ])('%j is refused', async (text, message) => {
    await projectFile(text)
    const said = (await refusal()).message
    expect(said).toContain(message)
    expect(said).not.toMatch(/:$/)
  })

  it('of a YAML fault the line is named, where the parser stumbled only after it, too', async () => {
    await projectFile('max_retries: 1\nverify: [npm test\n\n')
    expect((await refusal()).hint).toBe('fix line 2: verify: [npm test')
  })

  it.each([
    ['# mine\n\nmax_retires: 5\n', 'ralph.yaml:3:1', 'Did you mean max_retries?'],
    ['verify: [a]\nmax_retries:   many\n', 'ralph.yaml:2:16', 'in ralph.yaml: max_retries: 3'],
    ['max_retries: 1\nverify: a\nmax-retries: 2', 'ralph.yaml:3:1', 'remove one'],
    ['stories:\n  "2": { gate: x }\n', 'ralph.yaml:2:3', '"verify"'],
    ['max_cost:\nverify: a', 'ralph.yaml:1:', ''],
  ])('of a wrong setting the line and the column are named: %j', async (text, place, hint) => {
    await projectFile(text)
    const error = await refusal()
    expect(error.message).toContain(place)
    expect(error.hint).toContain(hint)
  })

  it('of a wrong setting in JSON, too', async () => {
    await projectFile('{\n\t"max_retries": 1,\n\t"max_retires": 2\n}', 'ralph.json')
    const { message } = await refusal()
    expect(message).toMatch(/unknown setting "max_retires" in .*ralph\.json:3:2$/)
  })

  it('a wrong number comes with the line as it should be', async () => {
    await projectFile('max_retries: x')
    expect((await refusal()).hint).toBe('in ralph.yaml: max_retries: 3')
  })

  it('a file that cannot be read is an error, never taken for no file', async () => {
    await mkdir(join(project, 'ralph.yaml'))
    expect((await refusal()).message).toContain('cannot read')
  })
})

describe('values', () => {
  it.each<[OptionKey, unknown, string]>([
    ['max_retries', 'abc', '--max-retries must be a whole number, 0 or more, such as 3, not "abc"'],
    ['max_retries', '-1', 'not "-1"'],
    ['max_retries', '1.5', 'not "1.5"'],
    ['max_retries', '1e3', 'not "1e3"'],
    ['max_retries', '', 'not ""'],
    ['max_iterations', '0', '1 or more'],
    ['iteration_timeout', '0', 'above 0'],
    ['iteration_timeout', 'NaN', 'minutes as a number'],
    ['iteration_timeout', '45 apples', 'or a time such as 90s, 45m or 1h'],
    ['iteration_timeout', '0s', 'above 0'],
    ['iteration_timeout', 'm', 'minutes as a number'],
    ['iteration_timeout', '5m 1h', 'minutes as a number'],
    ['limit_wait', '700h', 'from 0 to 35791'],
    ['max_retries', '3m', 'a whole number'],
    ['max_cost', '5m', 'dollars as a number'],
    ['idle_timeout', '-2', 'from 0'],
    ['command_timeout', 'Infinity', 'seconds as a number'],
    ['max_cost', '$5', 'dollars as a number'],
    ['webhook', 'ftp://x', 'http://'],
    ['agent_env', ['NOVALUE'], 'KEY=VALUE'],
    ['task', '  ', 'not empty'],
  ])('%s = %j is refused with a sentence', async (key, raw, message) => {
    expect((await refusal({ [key]: raw })).message).toContain(message)
  })

  it('a timeout longer than a timer can hold is refused instead of firing at once', async () => {
    expect((await refusal({ iteration_timeout: '40000' })).message).toContain('at most 35791')
    expect((await load({ iteration_timeout: '35791' })).config.iteration_timeout).toBe(35_791)
  })

  it('a wrong word names the nearest choice: agent, also in a chain', async () => {
    expect((await refusal({ agent: 'cluade' })).hint).toContain('Did you mean claude?')
    expect((await refusal({ agent: 'claude,codx' })).hint).toContain('Did you mean codex?')
    expect((await refusal({ checkpoint: 'branhc' })).hint).toContain('Did you mean branch?')
  })

  it('a misspelt variable is warned about; one that resembles nothing is somebody else’s', async () => {
    const foreign = ['RALPH_ZZZZZZZZZZZZZZZZZZZZZZ', 'RALPH_FOO', 'RALPH_TEST_REPO', 'RALPH_PROGRAM']
    const own = ['RALPH_CHANGE', 'RALPH_STORY', 'RALPH_ATTEMPT', 'RALPH_ITERATION', 'RALPH_RUN_ID']
    const others = Object.fromEntries([...foreign, ...own].map((name) => [name, 'x']))
    const { warnings, config } = await load(
      {},
      { RALPH_MAX_RETIRES: '1', RALPH_MAX_RETRYS: '2', RALPH_AGNET: 'claude', ...others },
    )
    expect(warnings).toEqual([
      'unknown variable RALPH_MAX_RETIRES. Did you mean RALPH_MAX_RETRIES?',
      'unknown variable RALPH_MAX_RETRYS. Did you mean RALPH_MAX_RETRIES?',
      'unknown variable RALPH_AGNET. Did you mean RALPH_AGENT?',
    ])
    expect(config.max_retries).toBe(3)
  })

  it('what only a file can say is no variable', async () => {
    const { config, warnings } = await load({}, { RALPH_STORIES: '{}' })
    expect(config.stories).toEqual({})
    expect(warnings).toEqual(['the variable RALPH_STORIES is not used: stories is set in ralph.yaml only'])
  })

  it('lists in a variable stand one per line', async () => {
    const { config } = await load(
      {},
      { RALPH_VERIFY: 'npm test\nnpm run lint', RALPH_AGENT_ENV: 'A=1\nB=x=y' },
    )
    expect(config.verify).toEqual(['npm test', 'npm run lint'])
    expect(config.agent_env).toEqual({ A: '1', B: 'x=y' })
  })

  it('a time may have its unit, in flags, variables and files; a plain number has that of the setting', async () => {
    const flags = { iteration_timeout: '90s', idle_timeout: '10m', limit_wait: '8h', command_timeout: '2m' }
    expect((await load(flags)).config).toMatchObject({
      iteration_timeout: 1.5,
      idle_timeout: 10,
      limit_wait: 480,
      command_timeout: 120,
    })
    const plain = { iteration_timeout: '90', command_timeout: '2', limit_wait: '1h 30m', idle_timeout: '0m' }
    expect((await load(plain)).config).toMatchObject({
      iteration_timeout: 90,
      command_timeout: 2,
      limit_wait: 90,
      idle_timeout: 0,
    })
    expect((await load({}, { RALPH_IDLE_TIMEOUT: '1.5h' })).config.idle_timeout).toBe(90)
    await projectFile('iteration_timeout: 20 min\ncommand_timeout: 90s\n')
    expect((await load()).config).toMatchObject({ iteration_timeout: 20, command_timeout: 90 })
  })

  it('property: whatever is written as a number is read as that number or refused, never something else', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), fc.double().map(String), fc.nat().map(String)), async (raw) => {
        const outcome = await load({ idle_timeout: raw }).then(
          ({ config }) => config.idle_timeout,
          (error: unknown) => error,
        )
        if (outcome instanceof RalphError) return
        fc.pre(!/[hms]/.test(raw))
        expect(outcome).toBe(Number(raw))
        expect(raw.trim()).toMatch(/^\d+(\.\d+)?$/)
      }),
      { numRuns: 60 },
    )
  })
})

describe('the table', () => {
  it('every setting has a help text and either a default or the words for it', () => {
    for (const key of optionKeys) {
      const spec = specOf(key)
      expect(spec.help, key).not.toBe('')
      expect(spec.default !== undefined || spec.defaultText !== undefined, key).toBe(true)
    }
  })

  it('flags and variables follow from the key', () => {
    expect([flagOf('max_retries'), variableOf('max_retries')]).toEqual(['--max-retries', 'RALPH_MAX_RETRIES'])
  })
})
