// `npm run pictures [name …] [--light] [--to folder]`: runs the built program on a terminal and draws every screen of it into docs/images.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { drawer, svgOf } from './picture-png.ts'
import { makeQueue } from './picture-queue.ts'
import { makeScene, program } from './picture-scene.ts'
import { shown } from './picture-terminal.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { light: { type: 'boolean' }, to: { type: 'string' } },
})
const theme = values.light === true ? 'light' : 'dark'
const folder = values.to === undefined ? resolve(import.meta.dirname, '../docs/images') : resolve(values.to)
const sizes = [
  [140, 45],
  [80, 24],
] as const
const keys = { enter: '\r', escape: '\u001B', tab: '\t', down: '\u001B[B', left: '\u001B[D' }

const draw = drawer()
const scene = await makeScene(2_820)
if (positionals.length === 0 && values.to === undefined) rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
const size = { columns: 140, rows: 45 }
let screen = shown([process.execPath, program], { cwd: scene.repo, env: scene.env, ...size })

/** In every size, once the screen says so in that one. */
async function picture(name: string, wanted: string | RegExp): Promise<void> {
  await screen.until(wanted)
  if (positionals.length > 0 && !positionals.includes(name)) return
  for (const [columns, rows] of sizes) {
    await screen.resize(columns, rows)
    await screen.until(wanted)
    const png = draw(svgOf(screen.terminal, theme))
    const file = `${name}-${columns}x${rows}.png`
    writeFileSync(join(folder, file), png)
    console.log(`${file.padEnd(30)} ${Math.ceil(png.length / 1024)} KB`)
  }
}

try {
  await screen.until(/fix-dates .*running/)
  await picture('select', /add-login/)
  screen.type('/greet')
  await screen.until('/ greet')
  screen.type(keys.enter)
  await screen.until('enter open')
  screen.type(keys.enter)
  await picture('preview-stories', /gate npm test[^]*Language table/)
  for (const [number, name, wanted] of [
    ['2', 'scenarios', 'GIVEN'],
    ['3', 'prompt', /Story 1/],
    ['4', 'settings', 'budget in $'],
  ] as const) {
    screen.type(number)
    await picture(`preview-${name}`, wanted)
  }
  screen.type('r')
  await picture('loop-agent', /Bash npm test -- --all/)
  for (const [number, name, wanted] of [
    ['2', 'tasks', /\[x\] 3\.2/],
    ['3', 'diff', /src\/args/],
    ['4', 'gates', /✖ greets in Hungarian/],
    ['5', 'log', /begins: story 3/],
  ] as const) {
    screen.type(number)
    await picture(`loop-${name}`, wanted)
  }
  screen.type('1?')
  await picture('loop-keys', 'any key')
  screen.type(' n')
  await screen.until('A note for the next prompt')
  screen.type('Use the words of the README, please.')
  await picture('loop-note', 'please.')
  screen.type(keys.escape)
  scene.cue('story-3')
  await picture('loop-waiting', 'is asked again')
  screen.type('s')
  await picture('completion-done', 'enter do it')
  screen.type(`${keys.down}${keys.down}${keys.enter}`)
  await picture('result-summary', 'What each story took')
  screen.type(keys.tab)
  await picture('result-files', 'languages.md')
  screen.type(keys.escape)
  await screen.until('/ greet')
  screen.type('/')
  await screen.until('keep the filter')
  screen.type('\u0015polish')
  await screen.until(/\/ polish/)
  screen.type(keys.enter)
  await screen.until('enter open')
  screen.type('r')
  await picture('completion-stuck', 'enter do it')
  screen.type(keys.escape)
  await screen.until('What each story took')
  screen.type('q')
  await screen.exited
  const queue = makeQueue(scene)
  screen = shown([process.execPath, program, ...queue.words], { cwd: queue.repo, env: scene.env, ...size })
  await screen.until(/fix-dates +parked[^]*polish-cli +waiting/)
  screen.type(`${keys.down}${keys.down}`)
  await picture(
    'queue',
    /add-greeting +landed[^]*add-login +running +1\/3[^]*› ! fix-dates[^]*new-names +running +0\/3/,
  )
  screen.type('q')
  await screen.exited
  queue.stop()
} finally {
  screen.kill()
  await scene.remove()
}
