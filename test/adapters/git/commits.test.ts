// What the commits of a loop say, and in whose name: people read them, other programs look for their subjects.
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { worldOfTest as world, type World } from './world.ts'

const about = 'A title\n\n- [x] 1.1 first\n\nRalph-Change: demo\nRalph-Story: 1\nRalph-Agent: command'

async function loop(w: World, work: () => void = () => undefined): Promise<ReturnType<World['checkpoints']>> {
  const checkpoints = w.checkpoints()
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  w.write('work.txt', 'w')
  work()
  await checkpoints.keep(1, true)
  await checkpoints.save('1', 'checkpoint: 1', undefined, about)
  return checkpoints
}

describe('the commits on ralph/<change>', () => {
  it('F37: subject for programs, story and trailers for people; the author is the user, the committer ralph', async () => {
    const w = world()
    await loop(w)
    const [saved = ''] = w.git('log', '-1', '--format=%s|%an <%ae>|%cn <%ce>|%b').split('\0')
    expect(saved.trim()).toBe(`checkpoint: 1|Ada <ada@example.org>|ralph <ralph@localhost>|${about.trim()}`)
    const trailers = w.git('log', '-1', '--format=%(trailers:key=Ralph-Story,valueonly)')
    expect(trailers.trim()).toBe('1')
    expect(w.git('log', '-1', '--format=%an <%ae>|%cn|%B', 'HEAD~1').trim()).toBe(
      'Ada <ada@example.org>|ralph|initial state\n\nempty\n\nRalph-Change: demo',
    )
    expect(w.git('fsck', '--strict')).toBe('')
    expect(w.git('log', '-1', '--format=%an|%cn', 'refs/ralph/demo/attempts/1').trim()).toBe('ralph|ralph')
  })

  it('F37: an initial state that holds something of the user does not call itself empty; what they did between two attempts is theirs', async () => {
    const w = world()
    w.write('mine.txt', 'm')
    const checkpoints = await loop(w)
    expect(w.git('log', '-1', '--format=%B', 'HEAD~1').trim()).toBe('initial state\n\nRalph-Change: demo')
    w.write('mine.txt', 'between')
    await checkpoints.ensure('2')
    expect(w.git('log', '-1', '--format=%an|%cn|%B').trim()).toBe(
      'Ada|ralph|changes before 2\n\nRalph-Change: demo',
    )
  })

  it.each([
    ['no identity', '', {}, 'ralph <ralph@localhost>'],
    ['a name without an address', '[user]\n\tname = Ada\n', {}, 'ralph <ralph@localhost>'],
    ['author.* before user.*', '[user]\n\tname = A\n\temail = a@x\n[author]\n\tname = B\n', {}, 'B <a@x>'],
    ['characters that would end it', '[user]\n\tname = "A <b>\\tc"\n\temail = a@x\n', {}, 'A bc <a@x>'],
    [
      'the environment before all',
      '[user]\n\tname = A\n\temail = a@x\n',
      { GIT_AUTHOR_NAME: 'Ünï', GIT_AUTHOR_EMAIL: 'u@x' },
      'Ünï <u@x>',
    ],
  ])('F37: %s', async (_, config, env, expected) => {
    const w = world()
    writeFileSync(join(w.root, 'home/.gitconfig'), config)
    const checkpoints = w.checkpoints('branch', { env: { ...w.env, ...env } })
    const { commit } = await checkpoints.start('start')
    expect(w.git('log', '-1', '--format=%an <%ae>|%cn <%ce>', commit).trim()).toBe(
      `${expected}|ralph <ralph@localhost>`,
    )
    expect(w.git('fsck', '--strict')).toBe('')
  })

  it('F37: an agent that sets another identity does not become the author of its story, and a repository with rules of its own has the same author', async () => {
    const w = world()
    await loop(w, () => w.git('config', 'user.name', 'Mallory'))
    expect(w.git('log', '-1', '--format=%an').trim()).toBe('Ada')
    const shared = world()
    chmodSync(join(shared.dir, '.git/objects'), 0o2775)
    await loop(shared)
    expect(shared.git('log', '-1', '--format=%an|%cn|%b').trim()).toBe(`Ada|ralph|${about}`)
  })

  it('F37: stash entries stay recognisable as ralph’s own', async () => {
    const w = world()
    const checkpoints = w.checkpoints('stash')
    await checkpoints.start('start')
    w.write('mine.txt', 'm')
    await checkpoints.ensure('1')
    expect(w.git('stash', 'list', '--format=%gs|%ae|%ce').trim()).toBe(
      'ralph:demo:1|ralph@localhost|ralph@localhost',
    )
  })
})
