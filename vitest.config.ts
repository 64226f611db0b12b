import { basename, relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Begun first, so that no worker is still at one of them when all the others have ended: by how long they took, in CI. */
const longest = [
  'submodules',
  'real-agents',
  'real',
  'after-death',
  'locks-and-journal',
  'fresh-eyes',
  'kill-stash',
  'kill-branch',
  'mcp',
  'acp-real',
  'permissions',
  'whose-settings',
  'told',
  'openspec',
  'whose-files',
  'power-cut',
  'first-user',
  'docs-lines',
  'first-minutes',
  'contract',
  'property',
  'worktree-again',
  'attack',
  'hazards',
  'agents',
  'result',
  'usage',
  'whose-refs',
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
    hookTimeout: 300_000,
    // Each worker loads the program's modules once, not once for each file.
    isolate: false,
    // A fork copies the tables of all pages: most of what a git command costs a worker with a heap as it grows by default.
    // And few functions of a test are called so often that to compile them anew, for speed, pays: a tenth of what a worker does.
    execArgv: ['--max-semi-space-size=2', '--interrupt-budget=1000000'],
    // Two more than the cores of CI: most tests wait for processes.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
  },
})
