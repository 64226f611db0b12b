// `ralph init`: what a first ralph.yaml would say here, and the file itself; nothing that is there is ever written over.
import { lstatSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { installedAgents, loginOf } from '../adapters/agents/installed.ts'
import { verificationCommands } from '../adapters/openspec/verification.ts'
import { settingsFileNames } from '../config/files.ts'
import { starterFile } from '../config/starter.ts'
import { RalphError } from '../core/error.ts'
import type { Control, Said, Setup } from '../ui/app.ts'
import { cannotRun } from './gate-programs.ts'
import type { Site } from './site.ts'

export async function setupOf({ git, env }: Site, mcp: boolean): Promise<Setup> {
  if (!mcp) refuseExisting(git.worktree)
  const installed: readonly string[] = installedAgents(env)
  const agents = installed.map((name) => ({ name, login: loginOf(name, env) }))
  // One that can be used at once before one that has to be logged in.
  const first = agents.find(({ login }) => login.is === 'found') ?? agents[0]
  const found = await verificationCommands(git.worktree)
  const gates = await Promise.all(
    found.map(async (command) => {
      const missing = await cannotRun(command, { cwd: git.worktree, env })
      return { command, ...(missing !== undefined && { problem: missing.detail }) }
    }),
  )
  return {
    path: join(git.worktree, 'ralph.yaml'),
    isThere: existing(git.worktree) !== undefined,
    agent: first?.name ?? '',
    agents: agents.map(({ name, login: { how } }) => ({ name, login: how })),
    gates,
    mcp: mcpOf(git.worktree, installed),
  }
}

export async function initHere(site: Site, request: Parameters<Control['init']>[0]): Promise<Said> {
  const { worktree } = site.git
  const written: string[] = []
  if (!request.mcp) refuseExisting(worktree)
  // Who has settings and asks for the entry wants just that.
  if (existing(worktree) === undefined) {
    const path = join(worktree, 'ralph.yaml')
    writeNew(path, starterFile(request))
    written.push(path)
  }
  const [claude] = mcpOf(worktree, ['claude'])
  if (request.mcp && claude?.file !== undefined) {
    writeNew(claude.file, claude.text)
    written.push(claude.file)
  }
  return {
    message: written.map((file) => `Written: ${file}`).join('\n') || 'Nothing was written.',
    next: 'ralph doctor',
    data: { written, agent: request.agent, verify: [...request.gates] },
  }
}

/** Also a link that leads nowhere: whatever it is, it is the user's. */
function existing(folder: string): string | undefined {
  return settingsFileNames.find(
    (name) => lstatSync(join(folder, name), { throwIfNoEntry: false }) !== undefined,
  )
}

function refuseExisting(folder: string): void {
  const there = existing(folder)
  if (there === undefined) return
  throw new RalphError('config', `${join(folder, there)} already exists.`, {
    hint: 'Nothing was touched. What it sets: ralph config. What else can be set: ralph loop --help',
  })
}

/** `wx`: whoever makes the file between the look and the write has it. */
function writeNew(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx', flush: true })
  } catch (cause) {
    const isThere = (cause as NodeJS.ErrnoException).code === 'EEXIST'
    const why = isThere ? 'already exists' : `cannot be written: ${(cause as Error).message}`
    throw new RalphError(isThere ? 'config' : 'disk', `${path} ${why}.`, {
      hint: 'Nothing was written there.',
      cause,
    })
  }
}

const claudeFile = `${JSON.stringify(
  { mcpServers: { ralph: { type: 'stdio', command: 'ralph', args: ['mcp'] } } },
  undefined,
  2,
)}\n`

/** How each agent gets to know of `ralph mcp`. Files of the user's home, and any that are there, are the agents' own to change. */
function mcpOf(worktree: string, agents: readonly string[]): Setup['mcp'] {
  const path = join(worktree, '.mcp.json')
  const isFree = lstatSync(path, { throwIfNoEntry: false }) === undefined
  const ways: Readonly<Record<string, Omit<Setup['mcp'][number], 'agent'>>> = {
    claude: {
      command: 'claude mcp add --scope project ralph -- ralph mcp',
      text: claudeFile,
      ...(isFree && { file: path }),
    },
    codex: { command: 'codex mcp add ralph -- ralph mcp', text: '' },
    gemini: { command: 'gemini mcp add ralph ralph mcp', text: '' },
    opencode: {
      command: 'add to opencode.json: "mcp": { "ralph": { "type": "local", "command": ["ralph", "mcp"] } }',
      text: '',
    },
  }
  return agents.flatMap((agent) => {
    const way = ways[agent]
    return way === undefined ? [] : [{ agent, ...way }]
  })
}
