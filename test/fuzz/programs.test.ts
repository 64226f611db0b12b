// What git and openspec print, as stand-ins that print anything: an answer, or an error of ours.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gitIn } from '../../src/adapters/git/git.ts'
import { readRefs } from '../../src/adapters/git/refs/refs.ts'
import { scanTree } from '../../src/adapters/git/tree/scan.ts'
import { readSettings } from '../../src/adapters/git/formats/settings.ts'
import { stashEntries } from '../../src/adapters/git/stash/stash-list.ts'
import { changedPaths } from '../../src/adapters/git/tree/tree.ts'
import { checkBy } from '../../src/adapters/openspec/check.ts'
import { findCli } from '../../src/adapters/openspec/cli.ts'
import { RalphError } from '../../src/core/error.ts'
import { anyBytes, isUnspoilt, jsonOf, seeded, settings, twisted, wounded } from './foreign.ts'

let folder = ''
const said = (): string => join(folder, 'said')
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ralph-fuzz-'))
  for (const name of ['git', 'openspec']) {
    const version = name === 'openspec' ? '[ "$1" = --version ] && { echo 1.13.2; exit; }\n' : ''
    writeFileSync(join(folder, name), `#!/bin/sh\n${version}cat '${said()}'\n`)
    chmodSync(join(folder, name), 0o755)
  }
  mkdirSync(join(folder, '.git'))
  writeFileSync(join(folder, '.git', 'HEAD'), 'ref: refs/heads/main\n')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const hash = 'a'.repeat(40)
const outputs = [
  Buffer.from(`${hash} refs/heads/main \n${hash} refs/tags/v1 \n${hash} refs/heads/b refs/heads/main\n`),
  Buffer.from(' M a\0?? b c\0!! d/\0UU e\0A  f\0'),
  Buffer.from('core.filemode\ntrue\0core.excludesfile\n~/x\0core.hookspath\n/dev/null\0'),
  Buffer.from(`${hash} ${hash} U <u@x> 1 +0000\tWIP on main: x\n`),
]

describe('fuzz: programs', () => {
  test(`git: any answer is read, or refused ${seeded}`, async () => {
    const env = { PATH: `${folder}:/usr/bin:/bin` }
    const git = gitIn(
      { worktree: folder, gitDir: join(folder, '.git'), gitCommonDir: join(folder, '.git') },
      { timeoutMs: 20_000, env },
    )
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyBytes, wounded(outputs)), async (bytes) => {
        writeFileSync(said(), bytes)
        expect(stashEntries(bytes.toString('latin1'))).toBeInstanceOf(Array)
        for (const ask of [
          () => readRefs(git),
          () => scanTree(git, { ignored: true }),
          () => readSettings(git),
          () => changedPaths(git, hash, hash),
        ]) {
          const answer = await ask().catch((error: unknown) => error)
          if (answer instanceof Error) expect(answer).toBeInstanceOf(RalphError)
        }
        expect(isUnspoilt()).toBe(true)
      }),
      settings(10),
    )
  })

  test(`openspec: any answer is taken, or the built-in rules serve ${seeded}`, async () => {
    const { cli } = await findCli({ from: folder, env: { PATH: `${folder}:/usr/bin:/bin` } })
    if (cli === undefined) throw new Error('the stand-in was not taken')
    const answers = [
      { context: 'x', operationGuidance: ['a'], state: 'ready', progress: { total: 2, complete: 1 } },
      { items: [{ valid: false, issues: [{ level: 'ERROR', path: 'x', line: 3, message: 'm' }] }] },
      { status: [{ message: 'm', fix: 'f' }] },
    ]
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          anyBytes,
          twisted(answers).map((value) => Buffer.from(jsonOf(value))),
        ),
        async (bytes) => {
          writeFileSync(said(), bytes)
          const check = checkBy(cli, folder, 'demo')
          expect(typeof (await check.count(2))).toBe('string')
          const validation = await check.validate()
          expect(validation === undefined || Array.isArray(validation.issues)).toBe(true)
        },
      ),
      settings(10),
    )
  })
})
