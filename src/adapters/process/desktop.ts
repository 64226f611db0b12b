// A notice on the user's desktop, by the program that the platform has for it.
import { exec } from './exec.ts'
import { onPath } from './on-path.ts'

export interface Notice {
  readonly title: string
  readonly text: string
}

type Program = (notice: Notice) => readonly [file: string, ...args: string[]]

/** Undefined where there is none, or no desktop to show it. */
export function desktopOf(
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): Program | undefined {
  if (platform === 'darwin') {
    const file = onPath('osascript', env)
    // Both as arguments: nothing of them is read as a script.
    const script = ['on run {t, b}', 'display notification b with title t', 'end run']
    if (file === undefined) return undefined
    return ({ title, text }) => [file, ...script.flatMap((line) => ['-e', line]), '--', title, text]
  }
  const file = onPath('notify-send', env)
  const hasDesktop = env['DISPLAY'] || env['WAYLAND_DISPLAY']
  if (file === undefined || !hasDesktop) return undefined
  // Its text is markup.
  return ({ title, text }) => [file, '--app-name=ralph', '--', title, escaped(text)]
}

/** These make a notice of the bytes that a bell comes with (OSC 9): one is enough. */
export function isNoticingTerminal(env: NodeJS.ProcessEnv): boolean {
  return (
    ['iTerm.app', 'WezTerm', 'ghostty'].includes(env['TERM_PROGRAM'] ?? '') ||
    /kitty|ghostty/.test(env['TERM'] ?? '')
  )
}

/** Empty when it went well, else why not. Never waits long: the loop goes on, or ends. */
export async function showNotice(
  program: Program,
  notice: Notice,
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  const [file, ...args] = program(notice)
  const { exitCode, timedOut, spawnError, stderr } = await exec(file, args, { cwd, env, timeoutMs })
  if (exitCode === 0) return ''
  const why = timedOut ? `no answer within ${timeoutMs / 1000} s` : (spawnError?.message ?? stderr.trim())
  return `${file}: ${why || `exit code ${exitCode ?? 'none'}`}`
}

const timeoutMs = 5_000

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
