import { basename } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Begun first, so that no worker is still at one of them when all the others have ended. */
const longest = [
  'real-agents',
  'torture',
  'kill-branch',
  'kill-stash',
  'after-death',
  'submodules',
  'whose-files',
  'property',
  'openspec',
  'whose-settings',
  'real',
  'locks-and-journal',
  'kill-submodules',
]

class LongestFirst extends BaseSequencer {
  public override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = (file: TestSpecification): number => {
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
    // Two more than the cores of CI: most tests wait for processes.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
  },
})
