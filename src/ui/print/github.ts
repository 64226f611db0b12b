// Lines for the log of a GitHub Actions job: a group for each attempt, an annotation for what failed, and the report as its summary.
import { agentName } from '../vocabulary.ts'
import type { LoopEvent } from '../../core/event.ts'
import type { Io, Output } from '../io.ts'
import { storyName } from './describe.ts'
import { plainPrinter } from './plain.ts'
import type { Printer } from './printer.ts'
import { clip, oneLine } from './text.ts'

export function githubPrinter(io: Pick<Io, 'stdout' | 'stderr' | 'env'>): Printer {
  const plain = plainPrinter({ ...io, stdout: harmless(io.stdout), stderr: harmless(io.stderr) })
  const titles = new Map<string, string>()
  let isGrouped = false
  let program: string | undefined
  const command = (name: string, data: string, title = ''): void => {
    plain.pause()
    const properties =
      title === '' ? '' : ` title=${escaped(title).replaceAll(':', '%3A').replaceAll(',', '%2C')}`
    io.stdout.write(`::${name}${properties}::${escaped(data)}\n`)
  }
  const endGroup = (): void => {
    if (isGrouped) command('endgroup', '')
    isGrouped = false
  }
  return {
    tell(event): void {
      if (event.type === 'loop.started') program = event.agent_program
      if (event.type === 'story.started') titles.set(event.story_id, storyName(event.story_id, event.title))
      if (event.type === 'iteration.started') {
        endGroup()
        command(
          'group',
          `#${String(event.n)} ${nameOf(titles, event.story_id)}, ${agentName(event.agent, program)}`,
        )
        isGrouped = true
      }
      // How it ended is seen without opening the group.
      if (event.type === 'iteration.ended' || event.type === 'complete') endGroup()
      plain.tell(event)
      const failed = failureOf(event)
      if (failed !== undefined)
        command('error', clip(oneLine(failed.message), 2000), `ralph: ${nameOf(titles, failed.story_id)}`)
    },
    pause: () => plain.pause(),
    close: () => {
      plain.close()
      endGroup()
    },
  }
}

function nameOf(titles: ReadonlyMap<string, string>, storyId: string | undefined): string {
  return storyId === undefined ? 'the loop stopped' : `story ${titles.get(storyId) ?? storyId}`
}

/** What ends the loop; a failed attempt that is tried again is none. */
function failureOf(event: LoopEvent): Extract<LoopEvent, { type: 'error' }> | undefined {
  return event.type === 'error' ? event : undefined
}

/** As the runner undoes it. */
function escaped(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

/** The runner takes `::name::` behind any blanks, and `##[name]` anywhere, for a command: the words of an agent must be none. */
function harmless(stream: Output): Output {
  const write = (text: string): boolean =>
    stream.write(text.replaceAll(/^(\s*):(?=:)/gm, '$1: ').replaceAll('##[', '## ['))
  return Object.create(stream, { write: { value: write } }) as Output
}
