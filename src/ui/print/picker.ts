// Several changes and none named: lets the person at the terminal pick one.
import type { ChangeList } from '../app.ts'
import type { Io } from '../io.ts'
import { paintFor } from '../io.ts'
import { ask } from './ask.ts'
import { listText } from './list.ts'

/** For the numbers. */
const margin = '    '

/** Undefined: nobody picked one. */
export function pickChange(io: Io, { changes }: ChangeList, stop: AbortSignal): Promise<string | undefined> {
  const open = changes.filter((change) => change.tasks_total === 0 || change.tasks_done < change.tasks_total)
  const names = open.map(({ name }) => name)
  const [heading = '', ...rows] = listText(
    { changes: open },
    { paint: paintFor(io.stdout, io.env), columns: (io.stdout.columns ?? 80) - margin.length },
  ).split('\n')
  let number = 0
  return ask(
    io,
    {
      lines: [
        `${margin}${heading}`,
        ...rows.map((row) => {
          // What is set in belongs to the row above; below the table there are notes.
          if (row.startsWith(' ') || number === names.length) return `${margin}${row}`
          number += 1
          return `${String(number).padStart(2)}  ${row}`
        }),
      ],
      prompt: 'which change? (number or name, Ctrl-C for none) ',
      interpret: (word) => names.find((name) => name.toLowerCase() === word) ?? names[Number(word) - 1],
      again: `please type a number from 1 to ${String(names.length)}: `,
    },
    stop,
  )
}
