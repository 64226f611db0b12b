// The agent's part: one attempt of a plan as a shell script that meets the driver between its deeds.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Spawn } from './ledger.ts'
import type { AgentDeed, AttemptPlan } from './plan.ts'
import { change, quoted, type World } from './world.ts'

/** Rings between its deeds: 0 before the first, `steps` in all, and one last time when only the promise is left. */
export function writeAttempt(world: World, spawn: Spawn, attempt: AttemptPlan): string {
  const { before, after, ending } = attempt
  const lines = [
    ...before.flatMap((deed) => [playedBy(world, spawn, deed)]),
    ending === 'lie' ? ':' : workOf(world, spawn),
    ...after.map((deed) => playedBy(world, spawn, deed)),
  ]
  const path = join(world.desk, `attempt-${spawn.index}.sh`)
  const played = lines.map((line, step) => `ring agent step ${step}\n${line}`).join('\n')
  writeFileSync(path, `${played}\nring agent end\n${endings[ending]}\n`)
  return path
}

const endings: Readonly<Record<AttemptPlan['ending'], string>> = {
  complete: 'echo "<promise>COMPLETE</promise>"',
  lie: 'rm -f "work/story-$RALPH_STORY.txt"; echo "<promise>COMPLETE</promise>"',
  failed: 'echo "<promise>FAILED: it did not work</promise>"',
  none: 'echo "I am not sure."',
  crash: 'exit 3',
  suicide: 'kill -KILL $$',
}

function workOf(world: World, spawn: Spawn): string {
  const path = `work/story-${spawn.story}.txt`
  return `mkdir -p work; ${append(world, spawn, path)}; ${append(world, spawn, `work/${spawn.story}/more of ${spawn.index}.txt`)}`
}

function append(world: World, spawn: Spawn, path: string): string {
  const token = world.ledger.mint('agent', {
    path,
    place: 'loop',
    where: 'tree',
    moment: `iteration ${spawn.iteration}`,
    spawn: spawn.index,
  })
  world.ledger.agentPaths.add(path)
  return `mkdir -p "$(dirname ${quoted(path)})"; echo ${token} >> ${quoted(path)}`
}

/** Quiet and never fatal: what git refuses the agent leaves. */
function playedBy(world: World, spawn: Spawn, deed: AgentDeed): string {
  return `{ ${deeds[deed](world, spawn)}; } > /dev/null 2>&1 || :`
}

const tasksFile = `openspec/changes/${change}/tasks.md`

const deeds: Readonly<Record<AgentDeed, (world: World, spawn: Spawn) => string>> = {
  'edit-shared': (world, spawn) => append(world, spawn, 'src/shared.txt'),
  'edit-users': (world, spawn) => {
    const path = aFileOfTheUsers(world, spawn.index)
    return path === undefined ? ':' : append(world, spawn, path)
  },
  'delete-tracked': (world, spawn) => {
    const path = `src/old-${spawn.story}.txt`
    world.ledger.agentPaths.add(path)
    return `rm -f ${path}`
  },
  'delete-users': (world, spawn) => {
    const path = aFileOfTheUsers(world, spawn.index + 1)
    if (path === undefined) return ':'
    world.ledger.agentPaths.add(path)
    world.ledger.agentDeletes.add(path)
    return `rm -f -- ${quoted(path)}`
  },
  'odd-file': (world, spawn) => append(world, spawn, `work/odd ${spawn.index} "ünd" $so.txt`),
  commit: () => 'git add -A && git commit -qm "by the agent"',
  'switch-main': () => 'git checkout -q main',
  'branch-from-main': (world, spawn) => {
    world.ledger.agentRefs.add(`refs/heads/feature-${spawn.index}`)
    return `git checkout -q -b feature-${spawn.index} main && git commit -q --allow-empty -m "by the agent"`
  },
  'reset-hard': () => 'git reset -q --hard',
  'reset-main': (world) => {
    // In stash mode or on a detached HEAD this is the user's own place.
    if (world.plan.mode === 'stash') return 'git reset -q --hard'
    return 'git reset -q --hard main'
  },
  sweep: () => 'git checkout -q . ; git clean -qfd',
  stash: () => 'git stash push -q -u -m "by the agent"',
  'drop-stash': () => 'git stash drop -q',
  'make-refs': (world, spawn) => {
    for (const name of [`heads/agent-${spawn.index}`, `tags/agent-${spawn.index}`])
      world.ledger.agentRefs.add(`refs/${name}`)
    return `git branch agent-${spawn.index}; git tag agent-${spawn.index}`
  },
  'delete-refs': (world) => {
    for (const name of ['heads/user-branch', 'tags/user-tag']) world.ledger.agentRefs.add(`refs/${name}`)
    return 'git branch -q -D user-branch; git tag -d user-tag'
  },
  'move-refs': (world) => {
    for (const name of ['heads/user-branch', 'tags/user-tag']) world.ledger.agentRefs.add(`refs/${name}`)
    return 'git branch -q -f user-branch HEAD; git tag -f user-tag HEAD~1'
  },
  yaml: (world) => {
    world.ledger.agentPaths.add('ralph.yaml')
    return 'printf "verify: []\\nmax_retries: 9\\n" > ralph.yaml'
  },
  config: () => "git config alias.st '!touch pwned; git status'",
  hook: () =>
    'hooks="$(git rev-parse --git-common-dir)/hooks"; mkdir -p "$hooks"; printf "#!/bin/sh\\n[ -n \\"\\$RALPH_RUN_ID\\" ] || touch pwned\\n" > "$hooks/post-checkout"; chmod +x "$hooks/post-checkout"',
  attributes: () => 'echo "*.txt filter=nothing" >> "$(git rev-parse --git-common-dir)/info/attributes"',
  child: () => '(sleep 600 &); (setsid sleep 601 &)',
  'state-file': () => 'echo nonsense > .claude/loop-state.json',
  'tick-own': (world, spawn) => {
    world.ledger.agentPaths.add(tasksFile)
    return `sed -i 's/- \\[ \\] ${spawn.story}\\./- [x] ${spawn.story}./' ${tasksFile}`
  },
  'tick-foreign': () => `sed -i 's/- \\[ \\] 2\\./- [x] 2./' ${tasksFile}`,
  'stale-lock': () => 'touch "$(git rev-parse --git-dir)/index.lock"',
  nested: (world, spawn) => {
    const token = append(world, spawn, `nested-${spawn.index}/file.txt`)
    return `git init -q nested-${spawn.index}; ${token}`
  },
  // By rules of its own: its gates run once more without that.
  hide: (world, { index }) => {
    world.ledger.agentPaths.add('.gitignore')
    return `echo hidden-${index}/ >> .gitignore; mkdir hidden-${index}; echo x > hidden-${index}/file.txt`
  },
  submodule: (world, spawn) =>
    spawn.index % 2 === 0
      ? append(world, spawn, 'sub/lib.txt')
      : `${append(world, spawn, `sub/made ${spawn.index}.txt`)}; git -C sub add -A && git -C sub commit -qm "by the agent"`,
  'half-merge': (world) => {
    world.ledger.agentRefs.add('refs/heads/side')
    return 'git branch -q -D side; git checkout -q -b side HEAD~1 && echo "$RALPH_ITERATION" > clash.txt && git add clash.txt && git commit -qm side; git checkout -q - && echo other > clash.txt && git add clash.txt && git commit -qm other; git merge -q side'
  },
}

/** One that is not committed, if there is any: those are the ones that can be lost. */
function aFileOfTheUsers(world: World, salt: number): string | undefined {
  const folder = world.folder('loop')
  const there = world.ledger
    .liveOf(world.plan.mode === 'worktree' ? 'loop' : 'checkout')
    .filter((token) => !token.isCommitted && existsSync(join(folder, token.path)) && token.path !== 'a-link')
  return there[salt % Math.max(1, there.length)]?.path
}
