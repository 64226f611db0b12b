// After all tests: whether those that the scenarios of openspec/specs name were run here, and not left out by a condition.
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * `report` is vitest's of the whole suite. `failed` is each scenario that nothing here has proved; `elsewhere` those that only root
 * can prove, when this is a plain user, and those that need strace or bubblewrap, where there is none.
 */
export function unproved(root, report) {
  const specs = join(root, 'openspec', 'specs')
  /** What a helper holds is run by the files that call it. */
  const resultsOf = (file) =>
    report.testResults
      .filter(({ name }) => !file.endsWith('.test.ts') || name === join(root, file))
      .flatMap(({ assertionResults }) => assertionResults)
  /** @type {{ failed: string[], elsewhere: string[] }} */
  const found = { failed: [], elsewhere: [] }
  for (const capability of readdirSync(specs)) {
    const text = readFileSync(join(specs, capability, 'spec.md'), 'utf8')
    for (const [, file, name] of text.matchAll(/^- \*\*TEST\*\* (test\/\S+\.ts): (.+)$/gm)) {
      const begins = pattern(name)
      const named = resultsOf(file).filter(({ title, ancestorTitles }) =>
        [title, ...ancestorTitles].some((each) => begins.test(each)),
      )
      if (named.some(({ status }) => status === 'passed' || status === 'failed')) continue
      const needsRoot = named.length > 0 && named.every(({ fullName }) => /needs root|as root/.test(fullName))
      const needsStrace = named.length > 0 && named.every(({ fullName }) => /needs strace/.test(fullName))
      const needsCage = named.length > 0 && named.every(({ fullName }) => /needs bubblewrap/.test(fullName))
      const isElsewhere =
        (needsRoot && process.getuid?.() !== 0) || (needsStrace && !canTrace()) || (needsCage && !canCage())
      found[isElsewhere ? 'elsewhere' : 'failed'].push(`${file}: ${name}`)
    }
  }
  return found
}

/** Also asked by test/e2e/cage.test.ts, in its own words. */
function canCage() {
  return spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', 'true']).status === 0
}

function canTrace() {
  return spawnSync('strace', ['-f', '--seccomp-bpf', '-o', '/dev/null', 'true']).status === 0
}

/** A scenario names a test by how its title begins; `%s`, `$name` and `${name}` stand for values. */
function pattern(name) {
  const words = name
    .split(/%[a-zA-Z]|\$[a-zA-Z]+|\$\{[^}]*\}/)
    .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`^${words.join('.*')}`, 's')
}
