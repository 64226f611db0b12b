// Run on a pseudo terminal by terminal.test.ts: shows a loop in steps, one for each SIGUSR2.
import { performance } from 'node:perf_hooks'
import { humanAt } from '../../src/ui/print/choice.ts'
import { terminalPrinter } from '../../src/ui/print/terminal.ts'
import { complete, event, script } from './events.ts'

const printer = terminalPrinter({
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  now: () => performance.now(),
  frameMs: Number(process.env['FRAME_MS'] ?? 20),
})
process.on('exit', printer.close)
const stop = new AbortController()
process.on('SIGINT', () => stop.abort())

/** Up to the tool's use; the rest up to the question; the question; the end. */
const working = script.findIndex(({ type }) => type === 'gate.started')
const asking = script.findIndex(({ type }) => type === 'choice.needed')

const steps: (() => void)[] = [
  () => script.slice(working, asking).forEach((each) => printer.tell(each)),
  () => {
    const human = humanAt({ ...process, stdin: process.stdin, isQuiet: false, before: () => printer.pause() })
    const question = { originalBranch: 'main', branch: 'ralph/add-login', summary: '' }
    void human.choose(question, stop.signal).then((choice) => {
      printer.tell(event({ ...complete, choice }))
      printer.close()
      process.stdout.write(`chose ${choice}\n`)
      process.exit(0)
    })
  },
]
process.on('SIGUSR2', () => steps.shift()?.())
// Keeps the process alive between steps.
setInterval(() => undefined, 1000)
script.slice(0, working).forEach((each) => printer.tell(each))
