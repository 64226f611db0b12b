#!/usr/bin/env node
// Plays Claude Code for the pictures: a story of a small project at a time, one gate that fails, one limit; it waits where a picture is taken.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  failure,
  init,
  readPrompt,
  say,
  success,
  text,
  tool,
  toolResult,
} from '../test/agents/claude-lines.mjs'

const { RALPH_CHANGE: change, RALPH_STORY: story, RALPH_ATTEMPT: attempt, PLAY_FOLDER: folder } = process.env

/** Until the pictures of it are taken. */
async function waits(name) {
  while (!existsSync(`${folder}/${name}`)) await delay(50)
}

function write(path, content) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  toolResult('ok')
}

function creates(path, content) {
  tool('Write', { file_path: path, content })
  write(path, content)
}

function edits(path, from, to) {
  tool('Edit', { file_path: path, old_string: from, new_string: to })
  write(path, readFileSync(path, 'utf8').replace(from, to))
}

function reads(path) {
  tool('Read', { file_path: path })
  toolResult(readFileSync(path, 'utf8'))
}

function runs(command) {
  tool('Bash', { command })
}

function ticks(...tasks) {
  const path = `openspec/changes/${change}/tasks.md`
  const plan = readFileSync(path, 'utf8')
  tool('Edit', { file_path: path, old_string: '[ ]', new_string: '[x]' })
  write(
    path,
    tasks.reduce((now, task) => now.replace(`- [ ] ${task} `, `- [x] ${task} `), plan),
  )
}

const languages = (hungarian) => `export const languages = {
  en: (name) => \`hello \${name}\`,
  hu: (name) => \`${hungarian} \${name}\`,
  ja: (name) => \`こんにちは \${name} 👋\`,
}
`

const plays = {
  'add-greeting 1': () => {
    text('I start with the table: one greeting for each language, so that a new one is a line.')
    reads('src/greet.mjs')
    creates('src/languages.mjs', languages('szia'))
    runs('npm test')
    ticks('1.1', '1.2')
    text('The table is there, and each language in it has a greeting.')
  },
  'add-greeting 2': () => {
    text('`greet` takes the name and looks the language up in the table.')
    edits('src/greet.mjs', '  return `hello ${name}`', '  return (languages[language] ?? languages.en)(name)')
    edits('src/greet.mjs', '(name)', "(name = 'you', language = 'en')")
    edits('src/greet.mjs', 'export', "import { languages } from './languages.mjs'\n\nexport")
    ticks('2.1', '2.2')
    text('Without a name it says hello to you.')
  },
  'add-greeting 3': async () => {
    if (attempt === '1') {
      text('I add the flag `--lang` and pass it on.')
      creates('src/args.mjs', argsOf(''))
      edits('src/greet.mjs', 'languages[language]', 'languages[language.toUpperCase()]')
      ticks('3.1', '3.2', '3.3')
      text('The language can be chosen by a flag now.')
      return
    }
    text(
      [
        'The gate says that `--lang hu` still greets in English: the table has its languages in small letters, and I looked them up in capitals. So:',
        '',
        '- the flag is read in `src/args.mjs`, **in small letters**;',
        '- a language that is not in the table is refused, and those that are in it are named.',
      ].join('\n'),
    )
    reads('src/greet.mjs')
    reads('test/greet.mjs')
    creates('src/args.mjs', argsOf('.toLowerCase()'))
    edits('README.md', 'A program that greets.', 'A program that greets, in more than one language.')
    runs('node src/greet.mjs --lang hu Anna')
    toolResult('szia Anna')
    text('That is right now, and `--lang ja` says こんにちは Anna 👋. Next are the tests of both cases.')
    ticks('3.1', '3.2')
    edits('test/greet.mjs', '// more\n', refuses)
    runs('npm test -- --all')
    usage(31_000, 5_200)
    await waits('story-3')
    toolResult('ok')
    ticks('3.3')
    text('All tests pass.')
  },
  'add-greeting 4': async () => {
    if (!existsSync(`${folder}/limited`)) {
      writeFileSync(`${folder}/limited`, '')
      text('I read the README first.')
      const resetsAt = Math.ceil(Date.now() / 1000) + Number(process.env.PLAY_RESET_SECONDS)
      const rate_limit_info = { status: 'rejected', resetsAt, rateLimitType: 'five_hour' }
      say({ type: 'rate_limit_event', rate_limit_info })
      failure(429, "You've hit your limit")
      process.exit(1)
    }
    text('The README says how to choose a language, with an example for each.')
    edits('README.md', '\n\n', '\n\n    greet --lang hu Anna\n\n')
    creates('docs/languages.md', '# Languages\n\n- en\n- hu\n- ja (日本語)\n')
    creates('docs/日本語.md', '# ご挨拶 👋\n\n    greet --lang ja Anna\n')
    ticks('4.1', '4.2')
    text('Everything is told.')
  },
  'polish-cli 1': () => {
    text('A word for each error first.')
    creates('src/errors.mjs', 'export const unknown = (name) => `no language ${name}`\n')
    ticks('1.1')
  },
  'polish-cli 2': () => {
    text('I let the program end with an exit code of its own.')
    edits('src/greet.mjs', 'hello', 'good day')
    creates('src/exit.mjs', 'export const codes = { ok: 0, usage: 2 }\n')
    ticks('2.1', '2.2')
    text('The exit codes are in one place now.')
  },
  'fix-dates 1': async () => {
    text('I look at how the dates are made.')
    usage(12_000, 900)
    await waits('dates')
    ticks('1.1')
  },
}

const refuses = `test('refuses a language that is not in the table', async () => {
  const { readArgs } = await import('../src/args.mjs')
  assert.throws(() => readArgs(['--lang', 'xx', 'Anna']), /en, hu/)
})
`

function argsOf(lower) {
  return `import { languages } from './languages.mjs'

/** The language that was asked for, and the name. */
export function readArgs([flag, language, ...rest]) {
  if (flag !== '--lang') return { language: 'en', name: flag }
  if (!(language in languages)) throw new Error(\`one of \${Object.keys(languages).join(', ')}\`)
  return { language: language${lower}, name: rest.join(' ') }
}
`
}

function usage(input, output) {
  say({
    type: 'assistant',
    message: {
      id: `m${String(input)}`,
      model: 'claude-test',
      content: [],
      usage: { input_tokens: input, output_tokens: output },
    },
    parent_tool_use_id: null,
  })
}

/** So many seconds of work: a picture with the tokens of a story and the time of a script would look faked. */
const seconds = { 'add-greeting': [22, 31, 27, 18], 'polish-cli': [9, 12], 'fix-dates': [3] }

await readPrompt()
init()
await delay((seconds[change]?.[Number(story) - 1] ?? 0) * 1000)
await plays[`${change} ${story}`]()
text('<promise>COMPLETE</promise>')
const tokens = 36_000 + 2_900 * Number(story)
success('<promise>COMPLETE</promise>', {
  total_cost_usd: 0.09 + 0.031 * Number(story),
  modelUsage: { 'claude-test': { inputTokens: tokens, outputTokens: 2_400 } },
})
