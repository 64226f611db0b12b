// `npm test`: installs what is missing, builds, runs every check, and closes with the line `N passed, N failed`.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ensureInstalled, ensureSandbox, root } from './install.mjs'
import { unproved } from './scenarios.mjs'

const checksOnly = process.argv.includes('--checks')
const bin = (name) => join(root, 'node_modules', '.bin', name)

// OpenSpec would write into the developer's home, and send.
const env = { ...process.env, OPENSPEC_TELEMETRY: '0', OPENSPEC_NO_UPDATE_CHECK: '1' }
// The checks ask nobody: each Node would read the certificates first, for longer than many of them need.
const { NODE_EXTRA_CA_CERTS: _, ...offline } = env

function run(label, file, args, more = {}) {
  console.log(`\n▸ ${label}`)
  const child = spawn(file, args, { cwd: root, stdio: 'inherit', env: { ...env, ...more } })
  return { pid: child.pid, ended: endOf(child) }
}

/** Its exit code. */
function endOf(child, onError = (error) => console.error(error.message)) {
  return new Promise((resolve) => {
    child.on('error', (error) => {
      onError(error)
      resolve(1)
    })
    child.on('close', resolve)
  })
}

ensureInstalled()
if (!checksOnly) ensureSandbox()

let failed = 0
let passed = 0
/** Beside others: what it prints is shown at its end. */
async function check(label, file, args) {
  const child = spawn(file, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], env: offline })
  const printed = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => printed.push(chunk))
  const code = await endOf(child, (error) => printed.push(Buffer.from(`${error.message}\n`)))
  console.log(`\n▸ ${label}`)
  process.stdout.write(Buffer.concat(printed))
  if (code === 0) passed += 1
  else {
    failed += 1
    console.error(`✗ ${label} failed`)
  }
}

const built = check('build', process.execPath, ['scripts/build.mjs'])
// What all tests wait for has both cores for itself.
if (!checksOnly) await built
// From the network or npm's cache: the tests that need them wait for them (test/model-stub/real-agents.ts).
const agents = checksOnly ? undefined : run('real agents', process.execPath, ['scripts/install-agents.mjs'])
// Beside the tests, which need the program alone, and wait for processes often enough.
const others = [
  check('types', bin('tsc'), []),
  check('lint', bin('oxlint'), ['--type-aware', '--deny-warnings', 'src', 'test', 'scripts', 'bench']),
  built.then(() => check('package', bin('publint'), ['--strict'])),
  check('format', bin('oxfmt'), ['--check', 'src', 'test', 'scripts', 'bench']),
  check('unused code', bin('knip'), []),
  check('schemas up to date', bin('tsx'), ['scripts/schemas.ts', '--check']),
  check('specs', bin('openspec'), ['validate', '--specs', '--strict']),
]

if (!checksOnly) {
  const report = join(root, 'node_modules', '.cache', 'vitest-report.json')
  mkdirSync(dirname(report), { recursive: true })
  const reporters = ['default', 'json', './test/second-try.ts'].map((name) => `--reporter=${name}`)
  const args = ['run', ...reporters, `--outputFile.json=${report}`]
  const code = await run('tests', bin('vitest'), args, { RALPH_TEST_INSTALLING: String(agents?.pid) }).ended
  const counts = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : undefined
  passed += counts?.numPassedTests ?? 0
  failed += counts?.numFailedTests ?? 0
  if (counts !== undefined) {
    const { failed: unprovedHere, elsewhere } = unproved(root, counts)
    for (const test of elsewhere) console.log(`not run, for want of root, strace or bubblewrap: ${test}`)
    for (const test of unprovedHere) console.error(`✗ a scenario names a test that was not run: ${test}`)
    failed += unprovedHere.length
  }
  // A suite that could not even be loaded fails no test, but fails the run.
  if (code !== 0 && (counts?.numFailedTests ?? 0) === 0) failed += 1
}

await Promise.all(others)
console.log(`\n${passed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
