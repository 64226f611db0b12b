// Several changes and none named: lets the person at the terminal pick one.
import type { ChangeList } from '../app.ts'
import type { Io } from '../io.ts'
import { paintFor } from '../io.ts'
import { ask } from './ask.ts'
import { listText } from './list.ts'

/** Undefined: nobody picked one. */
export function pickChange(io: Io, { changes }: ChangeList, stop: AbortSignal): Promise<string | undefined> {
  const open = changes.filter((change) => change.tasks_total === 0 || change.tasks_done < change.tasks_total)
  const names = open.map(({ name }) => name)
  const [heading = '', ...rows] = listText(
    { changes: open },
    // A row is a line here: it is numbered.
    { paint: paintFor(io.stdout, io.env), columns: undefined },
  ).split('\n')
  return ask(
    io,
    {
      lines: [
        `    ${heading}`,
        ...rows.map((row, index) => {
          // Below the table there are notes.
          const number = index < names.length ? String(index + 1) : ''
          return `${number.padStart(2)}  ${row}`
        }),
      ],
      prompt: 'which change? (number or name, Ctrl-C for none) ',
      interpret: (word) => names.find((name) => name.toLowerCase() === word) ?? names[Number(word) - 1],
      again: `please type a number from 1 to ${String(names.length)}: `,
    },
    stop,
  )
}
