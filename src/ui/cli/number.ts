// Reads an iteration's number from the command line.
import { InvalidArgumentError } from '@commander-js/extra-typings'

export function iterationNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) {
    throw new InvalidArgumentError('It wants the number of an iteration, 1 or more; see: ralph attempts')
  }
  return Number(text)
}
