// `ralph init`: what it finds, what it asks, what it writes, and that it never writes over anything.
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { starterFile } from '../../src/config/starter.ts'
import { ralph, scratch } from './harness.ts'
import type { Scratch } from './harness.ts'
import { onTerminal } from './on-terminal.ts'
import { install } from './usage-kit.ts'

/** A project with a script that checks, one that does not count, and a language whose program is not there. */
function project(): Scratch {
  const at = scratch()
  at.write(
    'package.json',
    JSON.stringify({ scripts: { test: 'node --test', lint: 'eslint .', dev: 'vite' } }),
  )
  at.write('Cargo.toml', '[package]\nname = "x"\n')
  at.write('Makefile', 'check:\n\ttrue\n')
  for (const name of ['npm', 'make', 'claude', 'codex']) install(at, name, '#!/bin/sh\nexit 0\n')
  // No cargo, whatever this machine has.
  at.env['PATH'] = (at.env['PATH'] ?? '')
    .split(':')
    .filter((folder) => !existsSync(join(folder, 'cargo')))
    .join(':')
  at.env['CODEX_API_KEY'] = 'k'
  return at
}

const fileOf = (at: Scratch): string => join(at.repo, 'ralph.yaml')

async function settingsOf(at: Scratch): Promise<Record<string, { value?: unknown; origin: string }>> {
  const end = await ralph(at, ['config', '--json'])
  expect(end.stderr).toBe('')
  const { settings } = JSON.parse(end.stdout) as {
    settings: Record<string, { value?: unknown; origin: string }>
  }
  return settings
}

describe('ralph init', () => {
  test('--yes writes the agent that has a login and the gates that can run; what cannot is a comment', async () => {
    const at = project()
    const end = await ralph(at, ['init', '--yes'])
    expect(end).toMatchObject({ code: 0, stderr: '' })
    expect(end.stdout).toContain('Agent: codex (API key CODEX_API_KEY); installed, too: claude')
    expect(end.stdout).toContain(
      '  3  make check\n  -  cargo test  (left out: The gate `cargo test` cannot run',
    )
    expect(end.stdout).toContain(`Written: ${fileOf(at)}`)
    expect(end.stdout).toContain(
      'For codex, to look at the loops here (MCP): codex mcp add ralph -- ralph mcp',
    )
    expect(await settingsOf(at)).toMatchObject({
      agent: { value: ['codex'], origin: 'project' },
      verify: { value: ['npm run lint', 'npm test', 'make check'], origin: 'project' },
      max_retries: { value: 3, origin: 'default' },
    })
    expect(at.read('ralph.yaml')).toContain('#   - "cargo test"')
    expect(existsSync(join(at.repo, '.mcp.json'))).toBe(false)
    expect(at.git('status', '--porcelain', 'ralph.yaml')).toBe('?? ralph.yaml')
  })

  test('without a terminal and without --yes it only shows it: exit 2', async () => {
    const at = project()
    const end = await ralph(at, ['init'])
    expect(end.code).toBe(2)
    expect(end.stdout).toContain('agent: codex')
    expect(end.stderr).toContain('Nothing was written. To write it without a question, add: --yes')
    expect(existsSync(fileOf(at))).toBe(false)
  })

  test.each(['ralph.yaml', 'ralph.yml', 'ralph.json'])(
    'a %s that is there is named and stays: exit 2',
    async (name) => {
      const at = project()
      writeFileSync(join(at.repo, name), '{}')
      const end = await ralph(at, ['init', '--yes'])
      expect(end.code).toBe(2)
      expect(end.stderr).toContain(`${join(at.repo, name)} already exists.`)
      expect(at.read(name)).toBe('{}')
      expect(existsSync(join(at.repo, '.mcp.json'))).toBe(false)
    },
  )

  test('a link that leads nowhere is the user’s, too', async () => {
    const at = project()
    symlinkSync(join(at.root, 'elsewhere.yaml'), fileOf(at))
    expect((await ralph(at, ['init', '--yes'])).code).toBe(2)
    expect(existsSync(join(at.root, 'elsewhere.yaml'))).toBe(false)
  })

  test('nothing found: the file says so in comments, and sets nothing', async () => {
    const at = scratch()
    at.env['PATH'] = (at.env['PATH'] ?? '')
      .split(':')
      .filter((folder) =>
        ['claude', 'codex', 'opencode', 'gemini'].every((name) => !existsSync(join(folder, name))),
      )
      .join(':')
    const end = await ralph(at, ['init', '--yes', '--json'])
    expect(JSON.parse(end.stdout)).toMatchObject({ written: [fileOf(at)], agent: '', verify: [] })
    expect(Object.values(await settingsOf(at)).filter(({ origin }) => origin === 'project')).toEqual([])
  })

  test('--mcp writes .mcp.json where there is none; one that is there stays, and the command is named', async () => {
    const at = project()
    const entry = { mcpServers: { ralph: { type: 'stdio', command: 'ralph', args: ['mcp'] } } }
    expect((await ralph(at, ['init', '--yes', '--mcp'])).code).toBe(0)
    expect(JSON.parse(at.read('.mcp.json'))).toEqual(entry)
    const other = project()
    other.write('.mcp.json', '{ "mcpServers": {} }\n')
    const end = await ralph(other, ['init', '--yes', '--mcp'])
    expect(end.code).toBe(0)
    expect(end.stdout).toContain('claude mcp add --scope project ralph -- ralph mcp')
    expect(other.read('.mcp.json')).toBe('{ "mcpServers": {} }\n')
  })

  test('--mcp where there are settings adds that entry alone', async () => {
    const at = project()
    at.write('ralph.yaml', 'max_retries: 1\n')
    const end = await ralph(at, ['init', '--mcp'])
    expect([end.code, end.stdout]).toEqual([
      0,
      expect.stringContaining(`Written: ${join(at.repo, '.mcp.json')}`),
    ])
    expect([at.read('ralph.yaml'), at.read('.mcp.json')]).toEqual([
      'max_retries: 1\n',
      expect.stringContaining('ralph'),
    ])
  })

  test('on a terminal it asks for the gates, then whether to write, then for Claude Code', async () => {
    const at = project()
    const terminal = onTerminal(at, ['init'])
    await terminal.until((raw) => raw.includes('[all] '))
    terminal.type('9\r')
    await terminal.until((raw) => raw.includes('please type all, none'))
    terminal.type('2\r')
    await terminal.until((raw) => raw.includes('? [Y/n] '))
    expect(existsSync(fileOf(at))).toBe(false)
    terminal.type('\r')
    await terminal.until((raw) => raw.includes('[y/N] '))
    terminal.type('\r')
    expect((await terminal.exited).exitCode).toBe(0)
    expect(await settingsOf(at)).toMatchObject({ verify: { value: ['npm test'] } })
    expect(at.read('ralph.yaml')).toContain('#   - "npm run lint"')
    expect(existsSync(join(at.repo, '.mcp.json'))).toBe(false)
  })

  test('on a terminal no means that nothing is written', async () => {
    const at = project()
    const terminal = onTerminal(at, ['init'])
    await terminal.until((raw) => raw.includes('[all] '))
    terminal.type('\r')
    await terminal.until((raw) => raw.includes('? [Y/n] '))
    terminal.type('n\r')
    expect((await terminal.exited).exitCode).toBe(0)
    expect(terminal.raw()).toContain('Nothing was written.')
    expect(existsSync(fileOf(at))).toBe(false)
  })

  test('every comment that offers a setting is one that can be taken as it is', async () => {
    const at = scratch()
    const text = starterFile({ agent: '', gates: [], otherGates: [] })
    // F4: none is cut on a screen of 80 columns.
    expect(text.split('\n').filter((line) => line.length > 79)).toEqual([])
    const [head = '', ...rest] = text.split('\n\n')
    const taken = rest
      .join('\n\n')
      .replaceAll(/^# ([a-z_]+: \S.*)$/gm, '$1')
      .replace('# verify:\n#   -', 'verify:\n  -')
    writeFileSync(fileOf(at), `${head}\n${taken}`)
    const set = Object.values(await settingsOf(at)).filter(({ origin }) => origin === 'project')
    expect(set.length).toBe(11)
    expect(readFileSync(fileOf(at), 'utf8')).toContain('\nmax_cost: 20')
  })
})
