// Links and programs that an agent in its cage leaves for others to follow: git and ralph outside, the gates, the next agent.
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { goodAgent, program, ralph, scratch, tasksOf, type Scratch } from './harness.ts'

const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', 'true']).status === 0
const skipped = ` (needs bubblewrap${hasBwrap ? '' : ', which is not installed or may make no namespaces here'})`

const caged = ['--sandbox', 'workspace', '--agent-command']

function put(at: Scratch, path: string, text: string): string {
  const file = join(at.root, 'home', path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  return file
}

describe('links in the git directory', () => {
  test.each(['off', ...(hasBwrap ? ['workspace'] : [])])(
    'neither ralph nor the user’s git writes through them: sandbox %s',
    async (sandbox) => {
      const at = scratch({ tasks: tasksOf(2) })
      const mine = put(at, '.bashrc', 'mine\n')
      const names =
        'logs/HEAD logs/refs/heads/main logs/refs/heads/ralph/demo COMMIT_EDITMSG FETCH_HEAD ORIG_HEAD MERGE_MSG'
      const agent = at.script(
        'agent.sh',
        `#!/bin/sh
for name in ${names}; do mkdir -p .git/$(dirname $name); rm -f .git/$name; ln -s ~/.bashrc .git/$name; done
ln -sf ~/.zshenv .git/index; rm -rf .git/refs/tags; ln -s ~ .git/refs/tags
echo x >> story.txt; echo '<promise>COMPLETE</promise>'
`,
      )
      const end = await ralph(at, ['loop', 'demo', '--sandbox', sandbox, '--agent-command', agent])
      expect([end.code, end.stderr]).toEqual([0, expect.stringContaining('.git/logs/HEAD was a link to')])
      at.git('commit', '-q', '--allow-empty', '-m', 'of the user')
      at.git('tag', 'v1')
      expect((await ralph(at, ['finish', 'demo', '--squash'])).code).toBe(0)
      expect(readFileSync(mine, 'utf8')).toBe('mine\n')
      expect(['.zshenv', 'v1'].filter((name) => existsSync(join(at.root, 'home', name)))).toEqual([])
    },
  )

  test.each(['objects', 'objects/pack', 'refs', 'lfs'])(
    'one in place of %s, which is moved away, stays: the repository would not be whole without it',
    async (name) => {
      const at = scratch({ tasks: tasksOf(2) })
      at.git('gc', '-q')
      mkdirSync(join(at.repo, '.git/lfs'))
      const moved = `[ $RALPH_STORY = 2 ] || { mv .git/${name} ../moved; ln -s "$PWD/../moved" .git/${name}; }`
      const end = await ralph(at, ['loop', 'demo', '--agent-command', `${moved}; ${goodAgent}`])
      expect([end.code, end.stderr]).toEqual([0, expect.stringContaining(`.git/${name} is a link to `)])
      expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
      expect(at.git('fsck', '--full')).toBe('')
      expect(at.read('story-2.txt')).toContain('work of 2')
    },
  )

  test('nor through those of a set-up', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const mine = put(at, '.bashrc', 'mine\n')
    const setUp = `at=$(git rev-parse --git-dir); rm -f $at/logs/HEAD; ln -s ~/.bashrc $at/logs/HEAD; ln -s ~/.bashrc $at/COMMIT_EDITMSG`
    const words = ['--worktree', join(at.root, 'tree'), '--setup', setUp, '--agent-command', goodAgent]
    const end = await ralph(at, ['loop', 'demo', ...words])
    expect([end.code, readFileSync(mine, 'utf8')]).toEqual([0, 'mine\n'])
    expect(existsSync(join(at.repo, '.git/worktrees/tree/COMMIT_EDITMSG'))).toBe(false)
  })

  test('those of the user stay, and a pipe is not waited for', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    mkdirSync(join(at.root, 'logs'))
    execFileSync('cp', ['-a', join(at.repo, '.git/logs/.'), join(at.root, 'logs')])
    execFileSync('rm', ['-r', join(at.repo, '.git/logs')])
    symlinkSync(join(at.root, 'logs'), join(at.repo, '.git/logs'))
    const agent = `rm -f .git/COMMIT_EDITMSG; mkfifo .git/COMMIT_EDITMSG; ${goodAgent}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
    expect([end.code, end.stderr]).toEqual([0, expect.stringContaining('.git/COMMIT_EDITMSG was a pipe')])
    expect(readFileSync(join(at.root, 'logs/HEAD'), 'utf8')).toContain('ralph')
  })
})

describe.skipIf(!hasBwrap)(`what an agent leaves in the folders that it may write${skipped}`, () => {
  test('a link in a cache hides nothing from the gates', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('test/one.txt', 'one')
    at.git('add', '-A')
    at.git('commit', '-qm', 'a test')
    const other = put(at, 'rules/strict.txt', 'rule')
    const links = `ln -s "$PWD/test" ~/.cache/mozilla; ln -s ${dirname(other)} ~/.cache/new`
    const gate = `test -s test/one.txt && test -s ${other}`
    const agent = `${links}; ${goodAgent}`
    const end = await ralph(at, ['loop', 'demo', '--verify', gate, ...caged, agent])
    expect([end.code, existsSync(join(at.root, 'home/.cache/mozilla'))]).toEqual([0, true])
  })

  test('a link in the place of a rule of OpenSpec shows the next one no copy of a secret', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    put(at, '.ssh/id', 'the very secret')
    const agent = [
      'grep -rl "the very" .git/ralph | grep -v -e journal -e settings.json >> found.txt',
      'ln -sf ~/.ssh/id openspec/config.yaml; rm -rf openspec/specs; ln -s ~/.ssh openspec/specs',
      goodAgent,
    ].join('\n')
    const end = await ralph(at, ['loop', 'demo', ...caged, agent])
    expect([end.code, at.read('found.txt')]).toEqual([0, ''])
  })

  test('ralph itself and its programs, where npx has put them into a cache, cannot be written', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const modules = join(at.root, 'home/.npm/_npx/abc/node_modules')
    mkdirSync(join(modules, '.bin'), { recursive: true })
    cpSync(dirname(program), join(modules, 'ralphtool/dist'), { recursive: true })
    const env = { ...at.env, PATH: `${join(modules, '.bin')}:${at.env['PATH'] ?? ''}` }
    const agent = [
      `echo planted >> ${modules}/ralphtool/dist/main.js; echo planted > ${modules}/.bin/git`,
      'mv ~/.npm/_npx ~/.npm/away; mv ~/.npm/_npx/abc ~/.npm/away; echo x > ~/.npm/new',
      goodAgent,
    ].join('\n')
    const words = ['loop', 'demo', ...caged, agent]
    const end = spawnSync(process.execPath, [join(modules, 'ralphtool/dist/main.js'), ...words], {
      cwd: at.repo,
      env,
    })
    expect([end.status, existsSync(join(at.root, 'home/.npm/new'))]).toEqual([0, true])
    expect(readFileSync(join(modules, 'ralphtool/dist/main.js'), 'utf8')).not.toContain('planted')
    expect(existsSync(join(modules, '.bin/git'))).toBe(false)
  })

  test.each([
    ['npm', 'node_modules/ralphtool'],
    ['pnpm', 'node_modules/.pnpm/ralphtool@1.0.0/node_modules/ralphtool'],
  ])(
    'ralph itself, where %s has put it into the project, cannot be written or moved away',
    (manager, place) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('.gitignore', 'node_modules/\n')
      at.git('add', '-A')
      at.git('commit', '-qm', 'ignored')
      const modules = join(at.repo, 'node_modules')
      cpSync(dirname(program), join(at.repo, place, 'dist'), { recursive: true })
      mkdirSync(join(modules, '.bin'), { recursive: true })
      if (manager === 'pnpm') symlinkSync(relative(modules, join(at.repo, place)), join(modules, 'ralphtool'))
      symlinkSync('../ralphtool/dist/main.js', join(modules, '.bin/ralph'))
      const agent = [
        `for file in ${place}/dist/*.js ${place}/dist/*.cache; do echo planted >> $file; done`,
        `echo planted > ${place}/dist/new.cache; rm -f node_modules/.bin/ralph; echo planted > node_modules/.bin/git`,
        `for folder in node_modules ${place} ${place}/dist node_modules/.bin $(dirname $(dirname ${place})); do mv $folder away; done`,
        'mkdir node_modules/other && echo x > node_modules/other/x',
        // A link cannot be kept from that.
        'mkdir evil; rm -f node_modules/ralphtool; ln -s ../evil node_modules/ralphtool',
        goodAgent,
      ].join('\n')
      const words = ['loop', 'demo', ...caged, agent]
      const end = spawnSync(process.execPath, [join(modules, '.bin/ralph'), ...words], {
        cwd: at.repo,
        env: at.env,
        encoding: 'utf8',
      })
      expect([end.status, existsSync(join(modules, 'other/x'))]).toEqual([0, true])
      expect(readlinkSync(join(modules, '.bin/ralph'))).toBe('../ralphtool/dist/main.js')
      expect(existsSync(join(modules, '.bin/git'))).toBe(false)
      expect(spawnSync('grep', ['-rl', 'planted', join(at.repo, place)], { encoding: 'utf8' }).stdout).toBe(
        '',
      )
      const warning = 'node_modules/ralphtool appeared or was changed while the agent ran'
      expect((end.stderr + end.stdout).includes(warning)).toBe(manager === 'pnpm')
    },
  )

  test.each(['in the project', 'for all projects'])(
    'ralph itself, whose files have other names in a store that can be written, is not changed by these: %s',
    (where) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('.gitignore', 'node_modules/\n')
      at.git('add', '-A')
      at.git('commit', '-qm', 'ignored')
      const home = join(at.root, 'home/.local/share/pnpm')
      const place = join(where === 'in the project' ? at.repo : home, 'node_modules/ralphtool')
      const store = join(home, 'store/v10')
      cpSync(dirname(program), join(place, 'dist'), { recursive: true })
      mkdirSync(store, { recursive: true })
      execFileSync('cp', ['-rl', join(place, 'dist'), store])
      const agent = `for file in ~/.local/share/pnpm/store/v10/dist/*.js; do echo planted > $file; done; ${goodAgent}`
      const words = ['loop', 'demo', ...caged, agent]
      const end = spawnSync(process.execPath, [join(place, 'dist/main.js'), ...words], {
        cwd: at.repo,
        env: at.env,
        encoding: 'utf8',
      })
      expect([end.status, end.stderr]).toEqual([0, ''])
      expect(readFileSync(join(store, 'dist/main.js'), 'utf8')).toBe('planted\n')
      expect(spawnSync('grep', ['-rl', 'planted', place], { encoding: 'utf8' }).stdout).toBe('')
    },
  )

  test('the Node that runs ralph, and what it has compiled of it, cannot be changed, wherever they are', () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('.gitignore', '.venv/\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'ignored')
    const node = join(at.repo, '.venv/bin/node')
    mkdirSync(dirname(node), { recursive: true })
    cpSync(process.execPath, node)
    const cache = dirname(put(at, '.cache/node/v20/one', 'compiled'))
    const agent = [
      'mv .venv away; mv .venv/bin away; rm -f .venv/bin/node; ln -s /bin/true .venv/bin/node',
      `echo planted > ${cache}/one; echo planted > ${cache}/two; mv ~/.cache/node ~/.cache/away`,
      'echo x > .venv/bin/other',
      goodAgent,
    ].join('\n')
    const end = spawnSync(node, [program, 'loop', 'demo', ...caged, agent], {
      cwd: at.repo,
      env: { ...at.env, NODE_COMPILE_CACHE: dirname(cache) },
      encoding: 'utf8',
    })
    expect([end.status, existsSync(join(at.repo, '.venv/bin/other'))]).toEqual([0, true])
    expect(spawnSync(node, ['-p', '1'], { encoding: 'utf8' }).stdout).toBe('1\n')
    expect(spawnSync('grep', ['-rl', 'planted', join(at.root, 'home')], { encoding: 'utf8' }).stdout).toBe('')
  })

  test('the old ~/.config is closed where a variable has moved it, and an agent’s own program cannot be written', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    for (const path of ['.config/newtool/token', 'conf/newtool/token', '.local/share/newtool/key'])
      put(at, path, 'secret')
    const own = put(at, '.claude/local/claude', 'mine')
    const home = join(at.root, 'home')
    const env = { XDG_CONFIG_HOME: join(home, 'conf'), XDG_DATA_HOME: join(home, 'data') }
    const agent = [
      ': claude; cat ~/.config/newtool/token ~/conf/newtool/token ~/.local/share/newtool/key > seen.txt',
      'echo planted > ~/.claude/local/claude',
      goodAgent,
    ].join('\n')
    const end = await ralph(at, ['loop', 'demo', ...caged, agent], { env })
    expect([end.code, at.read('seen.txt'), readFileSync(own, 'utf8')]).toEqual([0, '', 'mine'])
  })
})
