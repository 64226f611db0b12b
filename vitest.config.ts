import { basename, relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Begun first, so that no worker is still at one of them when all the others have ended: by how long they took, in CI. */
const longest = [
  'whose-refs',
  'submodules',
  'after-death',
  'locks-and-journal',
  'fresh-eyes',
  'tui',
  'told',
  'guarded',
  'docs-lines',
  'power-cut',
  'first-minutes',
  'mcp',
  'real-agents',
  'real',
  'whose-settings',
  'queue',
  'openspec',
  'torture',
  'whose-files',
  'torture-found',
  'cage',
  'claims',
  'queue-target',
  'kill-branch',
  'first-user',
  'hazards',
  'worktree-again',
  'property',
  'usage',
  'shared-limits',
  'result',
  'agents',
  'queue-beside',
  'limits',
  'contract',
  'real-claims',
  'queue-attack',
  'permissions',
  'acp-real',
  'attack',
  'control',
  'kill-submodules',
]

/** Begun last, the long ones first: they start no processes, and to start one takes the longer the bigger the heap has grown. */
const withoutProcesses = [
  /^test\/fuzz\/|^test\/core\/prompt\./,
  /^test\/(core|config|engine)\/|^test\/(performance|architecture)\./,
]

class LongestFirst extends BaseSequencer {
  public override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = (file: TestSpecification): number => {
      const path = relative(import.meta.dirname, file.moduleId)
      const last = withoutProcesses.findIndex((group) => group.test(path))
      if (last !== -1) return longest.length + 1 + last
      const at = longest.indexOf(basename(file.moduleId, '.test.ts'))
      return at === -1 ? longest.length : at
    }
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b))
  }
}

export default defineConfig({
  define: { RALPH_VERSION: JSON.stringify('0.0.0-test') },
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    globalSetup: ['test/set-up.ts'],
    testTimeout: 300_000,
    // In CI alone, and said at the end (test/second-try.ts): a submission does not fail by one moment of a busy machine.
    retry: process.env['CI'] === undefined ? 0 : 1,
    hookTimeout: 300_000,
    // What is waited for is done by processes, which share two cores with everything else here: one second, as it is by default, is too short.
    expect: { poll: { timeout: 120_000 } },
    // Each worker loads the program's modules once, not once for each file.
    isolate: false,
    // A fork copies the tables of all pages: most of what a git command costs a worker with a heap as it grows by default.
    // And few functions of a test are called so often that to compile them anew, for speed, pays: a tenth of what a worker does.
    execArgv: [
      '--max-semi-space-size=2',
      // Node 22 and newer do not start with it.
      ...(process.versions.v8.startsWith('11.') ? ['--interrupt-budget=1000000'] : []),
    ],
    // Three for each core of CI: a test waits for processes more than half of its time, and four kept two cores busy for four fifths of it.
    maxWorkers: 6,
    sequence: { sequencer: LongestFirst },
  },
})
