// Names each test that passed only when it was tried again: on a busy CI that costs no run, but it is said.
import type { Reporter, TestCase } from 'vitest/node'

export default class SecondTry implements Reporter {
  readonly #named: string[] = []

  public onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky !== true) return
    // With the difference: what a program said is in it, and is not to be had again.
    const [error] = test.result().errors ?? []
    const why = [error?.message, error?.diff].filter(Boolean).join('\n').replaceAll('\n', '\n    ')
    this.#named.push(`${test.module.relativeModuleId}: ${test.fullName}\n    ${why}`)
  }

  public onTestRunEnd(): void {
    for (const name of this.#named) console.warn(`! failed once, passed when tried again: ${name}`)
  }
}
