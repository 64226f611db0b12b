// The built program on OpenSpec plans: what agents do to them, what comes back, and what the real openspec program says.
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventsOf, goodAgent, ralph, scratch, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'

const plan = 'openspec/changes/demo/tasks.md'
const bin = resolve(import.meta.dirname, '../../node_modules/.bin')
const fixtures = resolve(import.meta.dirname, '../fixtures/tasks')

/** Keeps what it sees in <root>/prompt-N and <root>/plan-N, then does `body`. */
function agent(at: Scratch, body: string): string {
  return at.script(
    'agent.sh',
    `#!/bin/sh
n=$RALPH_ITERATION; t=${plan}
cat > "${at.root}/prompt-$n"
cat $t > "${at.root}/plan-$n"
${body}
`,
  )
}

const complete = 'echo "<promise>COMPLETE</promise>"'
const seen = (at: Scratch, what: 'prompt' | 'plan', n: number): string =>
  readFileSync(join(at.root, `${what}-${n}`), 'utf8')

async function loop(at: Scratch, body: string, ...args: string[]): Promise<Finished> {
  return ralph(at, ['loop', 'demo', '--json', '--agent-command', agent(at, body), ...args])
}

function warnings(end: Finished, code: string): string[] {
  return eventsOf(end).flatMap((event) =>
    event.type === 'warning' && event.code === code ? [event.message] : [],
  )
}

const verdicts = (at: Scratch): string[] => at.state().iterations.map(({ verdict }) => verdict)

/** With the real openspec program on PATH, as a user of it has it. */
function withCli(at: Scratch): { env: NodeJS.ProcessEnv } {
  return { env: { PATH: `${bin}${delimiter}${at.env['PATH'] ?? ''}` } }
}

function openspec(at: Scratch, args: readonly string[], cwd = at.repo): unknown {
  const env = { ...at.env, OPENSPEC_NO_UPDATE_CHECK: '1' }
  return JSON.parse(execFileSync(join(bin, 'openspec'), args, { cwd, env, encoding: 'utf8' }))
}

/** A change that `openspec validate` calls valid. */
function validChange(at: Scratch): void {
  at.write(
    'openspec/changes/demo/specs/csv/spec.md',
    '## ADDED Requirements\n\n### Requirement: Rows\nIt SHALL write rows.\n\n#### Scenario: One\n- **GIVEN** a table\n- **WHEN** asked\n- **THEN** written\n',
  )
  at.git('add', '-A')
  at.git('commit', '-qm', 'specs')
}

describe('a plan that the agent destroys', () => {
  test.each([
    ['deleted', 'rm $t'],
    ['emptied', ': > $t'],
    ['stripped of its boxes', 'echo "# all done" > $t'],
    ['replaced by a folder', 'rm $t; mkdir $t; echo x > $t/x'],
    ['replaced by a link to nowhere', 'rm $t; ln -s /nowhere $t'],
    ['replaced by a link that never ends', 'rm $t; ln -s /dev/zero $t'],
    ['lost with its whole change', 'rm -rf openspec/changes/demo'],
    ['lost with all of openspec/', 'rm -rf openspec; echo x > openspec'],
    ['renamed with its change', 'mv openspec/changes/demo openspec/changes/other'],
  ])('P10: %s: the attempt fails, the plan is back, nothing is called done', async (_, attack) => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await loop(at, `[ $n = 1 ] && { ${attack}; }\n${complete}`)
    expect(end.code).toBe(0)
    expect(verdicts(at)).toEqual(['failed', 'complete'])
    expect(at.state().iterations[0]).toMatchObject({ done_check: false, attempt: 1 })
    expect(warnings(end, 'plan_lost')).toHaveLength(1)
    expect(seen(at, 'plan', 2)).toBe(tasksOf(1))
    expect(seen(at, 'prompt', 2)).toContain('it is restored')
    expect(at.read(plan)).toBe(tasksOf(1).replaceAll('[ ]', '[x]'))
    expect(at.git('status', '--porcelain')).toBe('')
    expect(readdirSync(join(at.repo, 'openspec/changes'))).toEqual(['demo'])
  })

  test('P10: every attempt destroys it: exit 3, and the plan is as it was', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await loop(at, `chmod 000 $t; rm -f $t; ${complete}`, '--max-retries', '1')
    expect(end.code).toBe(3)
    expect(at.read(plan)).toBe(tasksOf(1))
    expect(at.state().status).toBe('stuck')
  })
})

describe('a plan that the agent edits', () => {
  test('P9: foreign ticks, reworded tasks, edited proposal and specs go back; the story is judged by its own boxes', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    validChange(at)
    const proposal = at.read('openspec/changes/demo/proposal.md')
    const end = await loop(
      at,
      `if [ $n = 1 ]; then
sed -i 's/\\[ \\]/[x]/; s/2.1 first/2.1 something easy/' $t
echo "we need less" >> openspec/changes/demo/proposal.md
echo "## REMOVED Requirements" > openspec/changes/demo/specs/csv/spec.md
mkdir -p openspec/changes/demo/specs/new; echo x > openspec/changes/demo/specs/new/spec.md
fi
${complete}`,
    )
    expect(end.code).toBe(0)
    expect(verdicts(at)).toEqual(['complete', 'complete'])
    expect(warnings(end, 'put_back').join('\n')).toMatch(
      /2\.1[^]*another story[^]*2\.2[^]*another story[^]*proposal\.md[^]*specs\/csv\/spec\.md[^]*specs\/new/,
    )
    // 17: what is simply as before is one line; what names a command for somebody's bytes is one of its own.
    const told = warnings(end, 'put_back')
    expect(told.filter((line) => /; (put back|unticked)$/.test(line))).toEqual([])
    expect(told[0]).toMatch(/^put back what is outside of the story: .*2\.1.*; .*2\.2/)
    expect(told.filter((line) => line.includes('If it was you: ')).length).toBeGreaterThan(1)
    expect(seen(at, 'plan', 2)).toBe(tasksOf(2).replaceAll(/\[ \] 1/g, '[x] 1'))
    expect(at.read('openspec/changes/demo/proposal.md')).toBe(proposal)
    expect(at.read('openspec/changes/demo/specs/csv/spec.md')).toContain('SHALL write rows')
    expect(existsSync(join(at.repo, 'openspec/changes/demo/specs/new'))).toBe(false)
  })

  test('P9: a move into archive/ comes back with its ticks, and the story counts', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const end = await loop(
      at,
      `if [ $n = 1 ]; then sed -i 's/\\[ \\] 1/[x] 1/' $t
mkdir -p openspec/changes/archive; mv openspec/changes/demo openspec/changes/archive/2026-01-01-demo; fi
${complete}`,
    )
    expect(end.code).toBe(0)
    expect(warnings(end, 'put_back').join()).toContain('archive/2026-01-01-demo')
    expect(seen(at, 'plan', 2)).toBe(tasksOf(2).replaceAll('[ ] 1', '[x] 1'))
    expect(existsSync(join(at.repo, 'openspec/changes/archive/2026-01-01-demo'))).toBe(false)
  })

  test('some boxes ticked: partial, the work is kept, a retry is used, the next prompt asks for the rest', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await loop(
      at,
      `echo $n > file-$n; [ $n = 1 ] && sed -i 's/\\[ \\] 1.1/[x] 1.1/' $t\n${complete}`,
    )
    expect(end.code).toBe(0)
    expect(verdicts(at)).toEqual(['partial', 'complete'])
    expect(at.state().iterations.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(seen(at, 'prompt', 2)).toContain('- [ ] 1.2 second')
    expect(seen(at, 'prompt', 2)).not.toContain('- [ ] 1.1 first')
    expect(existsSync(join(at.repo, 'file-1'))).toBe(true)
    const zero = scratch({ tasks: tasksOf(1) })
    const stuck = await loop(zero, `sed -i 's/\\[ \\] 1.1/[x] 1.1/' $t; ${complete}`, '--max-retries', '0')
    expect(stuck.code).toBe(3)
    expect(zero.read(plan)).toContain('[x] 1.1 first\n- [ ] 1.2')
  })

  test('a story of 20 boxes goes on in parts and uses no retry, even with none allowed', async () => {
    const boxes = Array.from({ length: 20 }, (_, index) => `- [ ] 1.${index + 1} task number ${index + 1}\n`)
    const at = scratch({ tasks: `## 1. Large\n\n${boxes.join('')}` })
    const end = await loop(at, complete, '--max-retries', '0')
    expect(end.code).toBe(0)
    expect(verdicts(at)).toEqual(['progress', 'progress', 'complete'])
    expect(at.state().iterations.map(({ attempt }) => attempt)).toEqual([1, 1, 1])
    expect(seen(at, 'prompt', 2)).toContain('- [ ] 1.16 task')
    expect(seen(at, 'prompt', 2)).not.toContain('- [ ] 1.17 task')
    expect(at.read(plan)).not.toContain('[ ]')
  })

  test('P6: an agent that adds as many boxes as it ticks comes to an end', async () => {
    const boxes = Array.from({ length: 20 }, (_, index) => `- [ ] 1.${index + 1} task number ${index + 1}\n`)
    const at = scratch({ tasks: `## 1. Large\n\n${boxes.join('')}` })
    const more = `for i in 1 2 3 4 5 6 7 8; do echo "- [ ] 9.$n$i more work $n $i" >> $t; done`
    const end = await loop(at, `[ $n -gt 12 ] && exit 0\n${more}\n${complete}`)
    expect(end.code).toBe(3)
    expect(at.state()).toMatchObject({ status: 'stuck', stop_reason: 'iterations' })
    expect(at.state().iterations.length).toBeLessThan(9)
  })

  test('an explicit --max-iterations is kept, also by a large story', async () => {
    const boxes = Array.from({ length: 30 }, (_, index) => `- [ ] 1.${index + 1} task number ${index + 1}\n`)
    const at = scratch({ tasks: `## 1. Large\n\n${boxes.join('')}` })
    const end = await loop(at, complete, '--max-iterations', '2')
    expect(end.code).toBe(3)
    expect(at.state().iterations).toHaveLength(2)
  })
})

describe('where the plan lies', () => {
  const failsOnce = `echo junk > junk.txt; sed -i 's/\\[ \\]/[x]/' $t
[ $n = 1 ] && { echo "<promise>FAILED: not yet</promise>"; exit 0; }
${complete}`

  test.each([
    [
      'ignored by git',
      (at: Scratch) => {
        at.git('rm', '-rq', '--cached', 'openspec')
        at.write('.gitignore', 'openspec/\n')
      },
    ],
    [
      'a link to a folder elsewhere',
      (at: Scratch) => {
        renameSync(join(at.repo, 'openspec'), join(at.root, 'plans'))
        symlinkSync('../plans', join(at.repo, 'openspec'))
      },
    ],
    [
      'in another repository',
      (at: Scratch) => {
        mkdirSync(join(at.root, 'plans'))
        renameSync(join(at.repo, 'openspec'), join(at.root, 'plans/openspec'))
        execFileSync('git', ['init', '-q'], { cwd: join(at.root, 'plans'), env: at.env })
        symlinkSync('../plans/openspec', join(at.repo, 'openspec'))
      },
    ],
  ])('G17: openspec/ is %s: the boxes of a failed attempt are restored', async (_, move) => {
    const at = scratch({ tasks: tasksOf(1) })
    move(at)
    at.git('add', '-A')
    at.git('commit', '-qm', 'moved')
    const end = await loop(at, failsOnce)
    expect(end.code).toBe(0)
    expect(verdicts(at)).toEqual(['failed', 'complete'])
    expect(seen(at, 'plan', 2)).toBe(tasksOf(1))
    expect(at.read(plan)).toBe(tasksOf(1).replaceAll('[ ]', '[x]'))
  })

  test('G17: a store in another repository, found by the openspec program; list and loop use it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const store = join(at.root, 'plans')
    mkdirSync(store)
    renameSync(join(at.repo, 'openspec'), join(store, 'openspec'))
    for (const folder of ['specs', 'changes/archive']) {
      mkdirSync(join(store, 'openspec', folder), { recursive: true })
      writeFileSync(join(store, 'openspec', folder, 'README.md'), '')
    }
    writeFileSync(join(store, 'openspec/config.yaml'), 'schema: spec-driven\n')
    execFileSync('git', ['init', '-q'], { cwd: store, env: at.env })
    at.write('openspec/config.yaml', 'store: team-plans\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'store')
    openspec(at, ['store', 'register', store, '--id', 'team-plans', '--yes', '--json'], store)
    const listed = await ralph(at, ['list', '--json'], withCli(at))
    expect(JSON.parse(listed.stdout)).toMatchObject({ changes: [{ name: 'demo', tasks_total: 2 }] })
    const tasks = join(store, plan)
    const body = `sed -i 's/\\[ \\]/[x]/' ${tasks}; echo w > work.txt; [ $RALPH_ITERATION = 1 ] && { echo "<promise>FAILED: no</promise>"; exit; }; cp ${tasks} ${at.root}/second; ${complete}`
    const command = at.script('away.sh', `#!/bin/sh\ncp ${tasks} ${at.root}/plan-$RALPH_ITERATION\n${body}\n`)
    const end = await ralph(at, ['loop', 'demo', '--agent-command', command, '--json'], withCli(at))
    expect(end.code).toBe(0)
    expect(seen(at, 'plan', 2)).toBe(tasksOf(1))
    expect(readFileSync(tasks, 'utf8')).toBe(tasksOf(1).replaceAll('[ ]', '[x]'))
    const without = await ralph(at, ['list'])
    expect(without.code).toBe(2)
    expect(without.stderr).toContain('team-plans')
  })

  test('G17: an ignored plan in a work tree of its own: the loop says where the ticked boxes stay', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('rm', '-rq', '--cached', 'openspec')
    at.write('.gitignore', 'openspec/\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'ignored')
    const end = await loop(at, complete, '--worktree', join(at.root, 'away'))
    expect(end.code).toBe(0)
    expect(warnings(end, 'wrap_up').join()).toContain(`stay in ${join(at.root, 'away')}`)
    expect(readFileSync(join(at.root, 'away', plan), 'utf8')).not.toContain('[ ]')
    expect(at.read(plan)).toBe(tasksOf(1))
  })

  test('G18: a package of a monorepo with a schema of its own: several task files, run from its folder', async () => {
    const at = scratch({ tasks: '' })
    const pkg = 'packages/a/openspec'
    mkdirSync(join(at.repo, 'packages/a'), { recursive: true })
    at.git('mv', 'openspec', pkg)
    at.write(
      `${pkg}/schemas/multi/schema.yaml`,
      'name: multi\nversion: 1\nartifacts:\n  - id: tasks\n    generates: "**/tasks.md"\n    description: x\n    template: t.md\napply:\n  requires: [tasks]\n  tracks: "**/tasks.md"\n',
    )
    at.write(`${pkg}/changes/demo/.openspec.yaml`, 'schema: multi\n')
    at.write(`${pkg}/changes/demo/api/tasks.md`, '## 1. A\n\n- [ ] 1.1 x\n')
    at.write(`${pkg}/changes/demo/web/tasks.md`, '## 1. B\n\n- [ ] 1.1 y\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'monorepo')
    const steals = `[ $RALPH_ITERATION = 1 ] && sed -i 's/\\[ \\]/[x]/' ${pkg}/changes/demo/*/tasks.md\n`
    const command = at.script('agent.sh', `#!/bin/sh\n${steals}${complete}\n`)
    const cwd = join(at.repo, 'packages/a')
    const end = await ralph(at, ['loop', '--agent-command', command, '--json'], { cwd })
    expect(end.code).toBe(0)
    expect(at.state().iterations.map(({ story_id }) => story_id)).toEqual(['api/1', 'web/1'])
    expect(warnings(end, 'put_back').join()).toContain('web/tasks.md:3')
    for (const part of ['api', 'web'])
      expect(at.read(`${pkg}/changes/demo/${part}/tasks.md`)).toContain('[x]')
  })

  test('P11: CRLF, BOM, bytes that are no UTF-8, no final newline: only the boxes change', async () => {
    const bytes = (mark: string): Buffer =>
      Buffer.concat([
        Buffer.from(`\uFEFF# Plan\r\n\r\n## 1. One\r\n\r\n- [${mark}] 1.1 caf`),
        Buffer.from([0xe9, 0x20, 0xff]),
        Buffer.from(` crème\r\n\t* [${mark}] nested\r\n1) [${mark}] 任务   \r\n\r\ntrailing`),
      ])
    const at = scratch()
    writeFileSync(join(at.repo, plan), bytes(' '))
    at.git('commit', '-qam', 'odd')
    const end = await loop(at, complete)
    expect(end.code).toBe(0)
    expect(readFileSync(join(at.repo, plan)).equals(bytes('x'))).toBe(true)
  })
})

describe('which change, and what is in it', () => {
  test('human, deferred and phantom tasks are said before a run and by show; only human ones left: exit 5', async () => {
    const tasks =
      '## 1. A\n\n- [ ] 1.1 code\n- [?] 1.2 sign the contract\n- [-] 1.3 some day\n\n```\n- [ ] 1.4 an example\n```\n'
    const at = scratch({ tasks })
    const end = await loop(at, complete)
    expect(end.code).toBe(5)
    const said = warnings(end, 'preflight').join('\n') || end.stdout
    expect(said).toMatch(/1\.2 is for a person/)
    expect(said).toMatch(/1\.3 is put off/)
    expect(said).toMatch(/tasks\.md:8 this box is in a fence/)
    expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'human' })
    expect(eventsOf(end).at(-1)).toMatchObject({
      reason: expect.stringContaining('sign the contract') as string,
    })
    expect(at.read(plan)).toBe(tasks.replace('[ ] 1.1', '[x] 1.1'))
    const prompt = seen(at, 'prompt', 1)
    expect(prompt).toMatch(/For a person[^]*sign the contract[^]*Put off[^]*some day/)
    const shown = (await ralph(at, ['show', 'demo'])).stdout
    expect(shown).toMatch(/\[\?\] 1\.2 sign[^]*\[-\] 1\.3 some[^]*worth knowing[^]*tasks\.md:8 this box/)
  })

  test('several open changes: a list and exit 2; a near name is named; an archived one is said to be', async () => {
    const at = scratch()
    at.write('openspec/changes/other/tasks.md', tasksOf(1))
    at.write('openspec/changes/finished/tasks.md', '- [x] done\n')
    at.write('openspec/changes/archive/2026-01-01-old/tasks.md', '- [x] done\n')
    const several = await ralph(at, ['loop', '--agent-command', goodAgent])
    expect(several.code).toBe(2)
    expect(several.stderr).toMatch(/2 open changes: demo, other/)
    const near = await ralph(at, ['show', 'dmeo'])
    expect(near.code).toBe(2)
    expect(near.stderr).toContain('Did you mean demo?')
    const old = await ralph(at, ['loop', 'old', '--agent-command', goodAgent])
    expect(old.code).toBe(2)
    expect(old.stderr).toContain('It is archived as 2026-01-01-old')
    expect(existsSync(join(at.repo, '.git/ralph'))).toBe(false)
  })

  test('P11: list counts as `openspec list` does: all fixtures, and this repository; one broken change hides no other', async () => {
    const at = scratch()
    for (const name of readdirSync(fixtures)) {
      const bytes = readFileSync(join(fixtures, name))
      mkdirSync(join(at.repo, 'openspec/changes', name.replace('.md', '')))
      writeFileSync(join(at.repo, 'openspec/changes', name.replace('.md', ''), 'tasks.md'), bytes)
    }
    interface Ours {
      readonly changes: { name: string; tasks_done: number; tasks_total: number; problem?: string }[]
    }
    interface Theirs {
      readonly changes: { name: string; completedTasks: number; totalTasks: number }[]
    }
    for (const cwd of [at.repo, resolve(import.meta.dirname, '../..')]) {
      const ours = JSON.parse((await ralph(at, ['list', '--json'], { cwd })).stdout) as Ours
      const theirs = openspec(at, ['list', '--json'], cwd) as Theirs
      expect(ours.changes.map((each) => `${each.name} ${each.tasks_done}/${each.tasks_total}`)).toEqual(
        theirs.changes.map((each) => `${each.name} ${each.completedTasks}/${each.totalTasks}`).sort(),
      )
    }
    mkdirSync(join(at.repo, 'openspec/changes/broken/tasks.md'), { recursive: true })
    const listed = await ralph(at, ['list'])
    expect(listed.code).toBe(0)
    expect(listed.stdout).toMatch(/demo +0\/3 +0\/6[^]*broken: .*cannot be read/)
  })

  test('show --json has the fields of contract 9, scenarios with their steps', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    validChange(at)
    expect(JSON.parse((await ralph(at, ['show', 'demo', '--json'])).stdout)).toEqual({
      name: 'demo',
      title: 'Demo change',
      stories: [
        {
          id: '1',
          title: 'Story 1',
          status: 'open',
          tasks: [
            { id: '1.1', text: 'first', state: 'open', line: 3 },
            { id: '1.2', text: 'second', state: 'open', line: 4 },
          ],
        },
      ],
      scenarios: [
        {
          capability: 'csv',
          requirement: 'Rows',
          name: 'One',
          steps: ['GIVEN a table', 'WHEN asked', 'THEN written'],
        },
      ],
      lints: [],
    })
    expect((await ralph(at, ['show', 'demo'])).stdout).toMatch(
      /One \(csv: Rows\)\n +GIVEN a table\n +WHEN asked/,
    )
  })

  test.each([
    ['noise', () => Buffer.from(Array.from({ length: 1 << 20 }, (_, index) => (index * 7919) % 251))],
    ['one line of brackets', () => Buffer.alloc(1 << 20, '- [')],
    ['fences that never close', () => Buffer.alloc(1 << 20, '```\n')],
    ['headings and lists without boxes', () => Buffer.alloc(1 << 20, '## A\n- b\n  - c\n')],
  ])('P10: a megabyte of %s: exit 2 with a clear word, nothing touched', async (_, bytes) => {
    const at = scratch()
    writeFileSync(join(at.repo, plan), bytes())
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect(end.code).toBe(2)
    expect(end.stderr).toMatch(/tasks\.md has no boxes, so it has no tasks to run/)
    expect(end.stderr.length).toBeLessThan(1000)
    expect(existsSync(join(at.repo, '.git/ralph'))).toBe(false)
  })
})

describe('the prompt and the learnings', () => {
  test('`ralph prompt` is byte for byte what the agent gets next: first, after a failure, after all retries', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write(
      'openspec/config.yaml',
      'schema: spec-driven\ncontext: |\n  We write Haskell only.\noperations:\n  apply:\n    guidance:\n      - Be brief\n',
    )
    at.write('package.json', '{"scripts":{"test":"vitest"}}\n')
    const before = (await ralph(at, ['prompt', 'demo'])).stdout
    const failing = `[ $n -le 2 ] && { echo "<promise>FAILED: no ghc here</promise>"; exit; }\n${complete}`
    expect((await loop(at, failing, '--max-retries', '1')).code).toBe(3)
    expect(before).toBe(seen(at, 'prompt', 1).replace('attempt 1 of 2', 'attempt 1 of 4'))
    expect(before).toMatch(/Project context[^]*We write Haskell only[^]*Guidance[^]*Be brief[^]*npm test/)
    const next = (await ralph(at, ['prompt', 'demo'])).stdout
    expect(next).toContain('no ghc here')
    const resumed = await ralph(at, ['resume', 'demo'])
    expect(resumed.code).toBe(0)
    const n = at.state().iterations.length - 1
    expect(seen(at, 'prompt', n)).toBe(next)
    const none = await ralph(at, ['prompt', 'demo'])
    expect(none.code).toBe(2)
    expect(none.stderr).toContain('no open story')
  })

  test('learnings survive a revert, reach the next prompt, and are shown; nothing of them is in the work tree', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await loop(
      at,
      `file=$(grep -o '/[^ ]*learnings.md' "${at.root}/prompt-$n" | head -1)
[ $n = 1 ] && { echo "- the tests need a TTY" >> "$file"; echo "<promise>FAILED: no</promise>"; exit; }
${complete}`,
    )
    expect(end.code).toBe(0)
    expect(seen(at, 'prompt', 2)).toMatch(/Learnings of earlier iterations[^]*the tests need a TTY/)
    expect((await ralph(at, ['learnings'])).stdout).toBe('- the tests need a TTY\n')
    expect(at.git('log', '-p', '--all')).not.toContain('TTY')
    const again = await loop(at, complete, '--fresh')
    expect(again.code).toBe(0)
    expect((await ralph(at, ['learnings', 'demo'])).stdout).toContain('TTY')
  })
})

describe('with the openspec program', () => {
  test('--archive makes a commit of its own on the branch; resume and cleanup still know the change', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    validChange(at)
    const args = ['--agent-command', goodAgent, '--archive', '--json']
    const end = await ralph(at, ['loop', 'demo', ...args], withCli(at))
    expect(end.code).toBe(0)
    expect(at.git('log', '--format=%s', '--reverse', 'main..')).toBe(
      'initial state\ncheckpoint: 1\narchive: demo',
    )
    expect(at.git('show', '--name-status', '--format=', 'HEAD')).toMatch(
      /R100\s+openspec\/changes\/demo\/tasks\.md\s+openspec\/changes\/archive\/\d{4}-\d\d-\d\d-demo\/tasks\.md/,
    )
    expect(at.read('openspec/specs/csv/spec.md')).toContain('SHALL write rows')
    expect(at.git('status', '--porcelain')).toBe('')
    const resumed = await ralph(at, ['resume', 'demo', '--on-complete', 'cleanup'])
    expect(resumed.code).toBe(0)
    expect(resumed.stdout + resumed.stderr).toContain('done already')
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(existsSync(join(at.repo, 'openspec/changes/demo'))).toBe(false)
    expect(at.read('story-1.txt')).toBe('work of 1\n')
  })

  test('--archive is refused while a box is open, and without the program; the loop is done all the same', async () => {
    const at = scratch({ tasks: `${tasksOf(1)}- [-] 1.3 some day\n` })
    const args = ['loop', 'demo', '--agent-command', goodAgent, '--archive', '--json']
    const end = await ralph(at, args, withCli(at))
    expect(end.code).toBe(0)
    expect(warnings(end, 'wrap_up').join('\n')).toMatch(
      /left open \(deferred\)[^]*not archived: 1 boxes are open/,
    )
    expect(at.git('log', '-1', '--format=%s')).toBe('checkpoint: 1')
    expect(existsSync(join(at.repo, plan))).toBe(true)
    const bare = scratch({ tasks: tasksOf(1) })
    const without = await ralph(bare, args)
    expect(without.code).toBe(0)
    expect(warnings(without, 'wrap_up')).toEqual([
      'demo was not archived: the openspec program is not installed',
    ])
  })

  test('--require-valid refuses an invalid change, and one that cannot be checked; nothing is touched', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const args = ['loop', 'demo', '--agent-command', goodAgent, '--require-valid']
    const invalid = await ralph(at, args, withCli(at))
    expect(invalid.code).toBe(2)
    expect(invalid.stderr).toMatch(/demo is not valid:\nERROR/)
    const unknown = await ralph(at, args)
    expect(unknown.code).toBe(2)
    expect(unknown.stderr).toMatch(/could not be validated: the openspec program is not installed/)
    expect(existsSync(join(at.repo, '.git/ralph'))).toBe(false)
    validChange(at)
    expect((await ralph(at, args, withCli(at))).code).toBe(0)
  })

  test('list, show and learnings never call it; a loop asks it for instructions and validation only', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    mkdirSync(join(at.repo, 'node_modules/.bin'), { recursive: true })
    at.write('.gitignore', 'node_modules\n')
    const calls = join(at.root, 'calls')
    const fake = `#!/bin/sh\necho "$*" >> ${calls}\n[ "$1" = --version ] && echo 1.13.2\n`
    symlinkSync(at.script('openspec', fake), join(at.repo, 'node_modules/.bin/openspec'))
    for (const args of [['list'], ['show', 'demo'], ['status'], ['list', '--json']]) await ralph(at, args)
    expect(existsSync(calls)).toBe(false)
    const end = await loop(at, complete)
    expect(end.code).toBe(0)
    expect(readFileSync(calls, 'utf8').split('\n').sort()).toEqual([
      '',
      '--version',
      'instructions apply --change demo --json',
      'validate demo --type change --json',
    ])
    expect(end.stdout).toContain('the built-in rules are used')
  })
})
