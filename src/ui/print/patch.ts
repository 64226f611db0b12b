// A patch in git's colours; in a pipe byte for byte, so that `git apply` can take it.
import type { Paint } from '../io.ts'
import { clean } from './text.ts'

export function patchText(patch: string, paint: Paint): string {
  if (!paint.isColorSupported) return patch
  return patch
    .split('\n')
    .map((line) => {
      const shown = clean(line)
      if (shown.startsWith('+')) return paint.green(shown)
      if (shown.startsWith('-')) return paint.red(shown)
      return shown.startsWith('@@') ? paint.cyan(shown) : shown
    })
    .join('\n')
}
