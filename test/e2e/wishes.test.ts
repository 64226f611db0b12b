// What is asked of a running loop from another process, beside a pause: a note for its next prompt, and not to wait.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createApp } from '../../src/compose.ts'
import type { Control } from '../../src/ui/app.ts'
import { goodAgent, ralph, scratch, start, tasksOf, type Scratch } from './harness.ts'

function controlling(at: Scratch): Control {
  const { stdout, stdin, stderr } = process
  return createApp({ cwd: at.repo, env: at.env, stdout, stdin, stderr }).control
}

const notesOf = (at: Scratch): readonly string[] => {
  const folder = join(at.repo, '.git/ralph/changes/demo/notes')
  return existsSync(folder) ? readdirSync(folder) : []
}

describe('a note', () => {
  test('a note outlives its loop: killed before the next prompt, the resume has it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const loop = start(at, [
      'loop',
      'demo',
      '--json',
      '--agent-command',
      'echo working; exec tail -f /dev/null',
    ])
    await loop.seen((out) => out.includes('working'))
    const said = await controlling(at).note({ change: undefined, text: 'look in src/web' })
    expect(said.message).toBe('The next prompt of demo has your note.')
    expect(notesOf(at)).toEqual([])
    await loop.seen((out) => out.includes('"note.added"'))
    loop.child.kill('SIGKILL')
    await loop.ended
    expect((await ralph(at, ['prompt', 'demo'])).stdout).toContain('look in src/web')
    const keeps = `cat > ${at.root}/prompt-$RALPH_ITERATION; ${goodAgent}`
    expect((await ralph(at, ['resume', 'demo', '--agent-command', keeps])).code).toBe(0)
    expect(readFileSync(join(at.root, 'prompt-2'), 'utf8')).toContain('look in src/web')
    expect(readFileSync(join(at.root, 'prompt-3'), 'utf8')).not.toContain('look in src/web')
  })

  test('where no loop is running a note is refused, and nothing waits to be skipped', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    const control = controlling(at)
    await expect(control.note({ change: 'demo', text: 'too late' })).rejects.toMatchObject({
      message: 'No loop of demo is running.',
      hint: expect.stringContaining('ralph resume demo --feedback') as string,
    })
    expect(notesOf(at)).toEqual([])
    expect(await control.skipWait('demo')).toMatchObject({ message: 'No loop is running here.' })
  })

  test('a loop that does not wait says so when it is to skip', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const loop = start(at, [
      'loop',
      'demo',
      '--json',
      '--agent-command',
      'echo working; exec tail -f /dev/null',
    ])
    await loop.seen((out) => out.includes('working'))
    const control = controlling(at)
    expect(await control.skipWait(undefined)).toMatchObject({
      message: 'demo does not wait for anything now.',
      data: { skipped: false },
    })
    await expect(control.note({ change: 'demo', text: '  ' })).rejects.toMatchObject({ code: 'usage' })
    await control.stop({ change: 'demo', force: false })
    expect((await loop.ended).code).toBe(143)
  })
})
