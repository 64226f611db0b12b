// README and the how-to pages: what they show is what the program prints, what they tell to type works, and what they link to is shipped.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import type * as Parser from '@actions/workflow-parser'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import * as z from 'zod'
import { errorCodes, RalphError } from '../../src/core/error.ts'
import { bundle } from '../bundle.ts'
import { program, ralph, scratch, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'
import { install, installClaude, spawned } from './usage-kit.ts'

const root = resolve(import.meta.dirname, '../..')
const read = (name: string): string => readFileSync(join(root, name), 'utf8')
function pagesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`)
}

const howTos = pagesIn('docs/how-to')

/** The blocks of a language, in their order. */
function blocks(page: string, language: string): readonly string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, text = '']) => text,
  )
}

/** `ralph` as a user has it. */
function withRalph(at: Scratch): void {
  install(at, 'ralph', `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`)
}

/** As GitHub would say it. Bundled: it imports JSON as no Node does. */
async function workflowErrors(at: Scratch, content: string): Promise<readonly string[]> {
  const file = join(at.root, 'parser.cjs')
  bundle(join(root, 'node_modules/@actions/workflow-parser/dist/index.js'), file)
  const { convertWorkflowTemplate, parseWorkflow } = (await import(file)) as typeof Parser
  const quiet = { error: () => undefined, info: () => undefined, verbose: () => undefined }
  const { context, value } = parseWorkflow({ name: 'ralph.yml', content }, quiet)
  if (value !== undefined) await convertWorkflowTemplate(context, value)
  return context.errors.getErrors().map(({ message }) => message)
}

describe('samples', () => {
  /** What differs from run to run, and how it is lined up. */
  const steady = (text: string): string =>
    text
      .replaceAll(/\b\d\d:\d\d:\d\d\b/g, 'TIME')
      .replaceAll(/\b(?:\d+h \d\dm|\d+m \d\ds|\d+(?:\.\d+)? m?s)(?!\w)/g, 'LONG')
      .replaceAll(/\b[0-9a-f]{7}\b/g, 'COMMIT')
      .replaceAll(/\d{8}T\d{9}Z/g, 'STAMP')
      .replaceAll(/\S*ralph-demo-\S+/g, 'FOLDER')
      .replaceAll('npx @fission-ai/openspec', 'openspec')
      // Which of the agent's words come together is a matter of microseconds.
      .replaceAll(/^.*(?:<promise>|Demo agent|Wrote ralph-demo|I stop here).*\n/gm, '')
      .replaceAll(/[ \t]+/g, ' ')

  test('the run in the README is what `ralph demo` prints; RALPH_SAMPLES=write (npm run samples) writes it again', async () => {
    const at = scratch()
    const end = await ralph(at, ['demo', '--remove'], { cwd: at.root })
    expect(end.code).toBe(0)
    const [, run = ''] = /^(\$ ralph loop .*?)\n\n(?:Your turn| +cd )/ms.exec(end.stdout) ?? []
    expect(run).toContain('A second language')
    const page = read('README.md')
    const [shown = ''] = blocks(page, 'text')
    if (process.env['RALPH_SAMPLES'] === 'write')
      writeFileSync(
        join(root, 'README.md'),
        page.replace(`\`\`\`text\n${shown}`, () => `\`\`\`text\n${run}\n`),
      )
    else expect(steady(shown.trim())).toBe(steady(run.trim()))
  })

  test('the plan in the README is one that runs', async () => {
    const plan = blocks(read('README.md'), 'sh').find((block) => block.includes('tasks.md')) ?? ''
    const at = scratch()
    execFileSync('sh', ['-e', '-c', plan], { cwd: at.repo, env: at.env })
    expect((await ralph(at, ['loop', 'add-greeting', '--agent', 'demo'])).code).toBe(0)
    expect(at.state().stories.map((story) => [story.title, story.status])).toEqual([
      ['Greet by name', 'done'],
      ['Tell people', 'done'],
    ])
  })

  test('the agent script of the how-to works as it is printed', async () => {
    const [script = ''] = blocks(read('docs/how-to/your-own-agent.md'), 'sh')
    const at = scratch({ tasks: tasksOf(2) })
    at.write('my-agent.sh', script)
    chmodSync(join(at.repo, 'my-agent.sh'), 0o755)
    expect((await ralph(at, ['loop', 'demo', '--agent-command', './my-agent.sh'])).code).toBe(0)
    expect(at.read('story-2.txt')).toBe('done by my agent\n')
  })

  test('F44: the workflow of the how-to: its steps run, and what it publishes is the branch and the report', async () => {
    const [text = ''] = blocks(read('docs/how-to/ci.md'), 'yaml')
    const step = z.looseObject({
      run: z.string().optional(),
      env: z.record(z.string(), z.string()).optional(),
    })
    const workflow = z.looseObject({ jobs: z.object({ loop: z.looseObject({ steps: z.array(step) }) }) })
    const { steps } = workflow.parse(parse(text)).jobs.loop
    const runs = steps.flatMap(({ run = '' }) => (/^ralph |git push/.test(run) ? [run] : []))
    expect(runs).toHaveLength(4)
    const at = scratch({ tasks: tasksOf(1) })
    withRalph(at)
    installClaude(at)
    install(at, 'npm', '#!/bin/sh\nexit 0\n')
    install(
      at,
      'gh',
      `#!/bin/sh\nfor last in "$@"; do :; done\ncat "$last" > '${at.root}/body'\necho "$*" > '${at.root}/gh'\n`,
    )
    at.git('init', '-q', '--bare', join(at.root, 'origin'))
    at.git('remote', 'add', 'origin', join(at.root, 'origin'))
    const env = {
      ...at.env,
      CHANGE: 'demo',
      ANTHROPIC_API_KEY: 'k',
      GITHUB_REF_NAME: 'main',
      GITHUB_ACTIONS: 'true',
      GITHUB_STEP_SUMMARY: join(at.root, 'summary'),
      RUNNER_TEMP: at.root,
    }
    for (const run of runs) execFileSync('bash', ['-e', '-c', run], { cwd: at.repo, env, stdio: 'pipe' })
    expect(spawned(at)).toEqual(['1'])
    expect(at.git('ls-remote', 'origin')).toContain('refs/heads/ralph/demo')
    expect(readFileSync(join(at.root, 'gh'), 'utf8')).toContain('--base main --head ralph/demo --title demo')
    expect(readFileSync(join(at.root, 'body'), 'utf8')).toContain('# ralph: demo')
    expect(readFileSync(join(at.root, 'summary'), 'utf8')).toContain('# ralph: demo')
    expect(readFileSync(join(at.root, 'report.html'), 'utf8')).toMatch(/^<!doctype html>.*demo/is)
  })

  test('the workflow file is the one of the how-to, and fits the schema that GitHub’s own parser has; a wrong key does not', async () => {
    const [block = ''] = blocks(read('docs/how-to/ci.md'), 'yaml')
    const file = read('docs/how-to/github-actions.yml')
    const at = scratch()
    expect(file.replace(/^#.*\n/, '')).toBe(block)
    expect(await workflowErrors(at, file)).toEqual([])
    expect(await workflowErrors(at, file.replace('timeout-minutes:', 'timeout-minuts:'))).toEqual([
      expect.stringContaining('timeout-minuts') as string,
    ])
    expect(await workflowErrors(at, file.replace('runner.temp', 'runer.temp'))).not.toEqual([])
  })

  test('the overnight command of the how-to is one that starts', () => {
    const [typed = ''] = blocks(read('docs/how-to/overnight.md'), 'sh')
    const [, command] = /^nohup (ralph loop .*) > ralph\.log/ms.exec(typed) ?? []
    const at = scratch({ tasks: tasksOf(1) })
    withRalph(at)
    for (const agent of ['claude', 'codex']) install(at, agent, '#!/bin/sh\necho 1.0.0\n')
    const line = `${command?.replace('add-login', 'demo') ?? ''} --dry-run`
    const plan = execFileSync('bash', ['-e', '-c', line], { cwd: at.repo, env: at.env, encoding: 'utf8' })
    expect(plan).toContain('claude')
    expect(plan).toContain('codex')
    expect(plan).not.toContain('refused')
  })

  test('every command and every flag that README and docs name is one of the program’s', () => {
    const lines = ['README.md', ...pagesIn('docs'), ...howTos].flatMap((name) => {
      const page = read(name)
      const inline = [...page.matchAll(/`(ralph [^`]+)`/g)].map(([, text = '']) => text)
      const typed = ['sh', 'yaml'].flatMap((language) =>
        blocks(page, language).flatMap((text) => text.replaceAll('\\\n', ' ').split('\n')),
      )
      return [...inline, ...typed]
        .flatMap((line) => [...line.replace(/\s#\s.*$/, '').matchAll(/\bralph ([a-z]+\b(?! \d)[^#|>]*)/g)])
        .map(([, words = '']) => `${name}: ${words.trim()}`)
    })
    expect(lines.length).toBeGreaterThan(150)
    const wrong = lines.filter((line) => {
      const [command = '', ...words] = line
        .replace(/^[^:]+: /, '')
        .replaceAll(/"[^"]*"|'[^']*'/g, 'X')
        // What follows is for the agent.
        .replace(/ -- .*/, '')
        .split(/[\s`;,]+/)
      const pageOf = (name: string): string => join(root, 'dist/help/80', `${name}.txt`)
      if (!existsSync(pageOf(command))) return true
      const own = readFileSync(pageOf(command), 'utf8')
      const help = own.includes('the options of ralph loop')
        ? own + readFileSync(pageOf('loop'), 'utf8')
        : own
      const flags = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.replace(/[).…]+$/, ''))
      return flags.some((flag) => !new RegExp(`(^|[ ,])${flag}(?![\\w-])`, 'm').test(help))
    })
    expect(wrong).toEqual([])
  })
})

describe('errors', () => {
  test('every error code is in the page, with its exit code', () => {
    const rows = [...read('docs/errors.md').matchAll(/^\| `(\w+)` \| (\d) \| .+ \| .+ \|$/gm)]
    const shown = rows.map(([, code, exit]) => `${code} ${exit}`).toSorted()
    expect(shown).toEqual(
      errorCodes.map((code) => `${code} ${new RalphError(code, '', { hint: '' }).exitCode}`).toSorted(),
    )
  })
})

describe('the package', () => {
  const packed = (): readonly string[] => {
    const answer = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [{ files } = { files: [] }] = z
      .array(z.object({ files: z.array(z.object({ path: z.string() })) }))
      .parse(JSON.parse(answer))
    return files.map(({ path }) => path)
  }

  test('has the pages for users and the changes, not those for contributors; each link between them leads to one that is shipped', () => {
    const files = packed()
    expect(files).toEqual(expect.arrayContaining(['README.md', 'CHANGELOG.md', 'docs/README.md', ...howTos]))
    expect(
      files.filter((path) => /CONTEXT|AGENTS|tour|decisions|pins|torture|hazards|^(?:src|test)\//.test(path)),
    ).toEqual([])
    const pages = files.filter((path) => /^(?:README\.md|docs\/.*\.md)$/.test(path))
    const links = pages.flatMap((page) =>
      [
        ...read(page)
          .replaceAll(/`[^`\n]*`/g, '')
          .matchAll(/(?:\]\(|<img src=")(?!https?:|#)([^)#"]+)/g),
      ].map(([, target = '']) => ({
        page,
        target: relative(root, resolve(root, dirname(page), target)),
      })),
    )
    expect(links.length).toBeGreaterThan(20)
    expect(links.filter(({ target }) => !files.includes(target))).toEqual([])
    const pictures = files.filter((path) => path.endsWith('.png'))
    expect(pictures).toEqual(
      [...new Set(links.map(({ target }) => target))].filter((path) => path.endsWith('.png')).toSorted(),
    )
    expect(pictures.reduce((sum, path) => sum + statSync(join(root, path)).size, 0)).toBeLessThan(300_000)
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(200)
  })
})
