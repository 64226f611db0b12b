// The program that a command line begins with, where PATH has none of that name, and the nearest that it has.
import { readdirSync } from 'node:fs'
import { delimiter } from 'node:path'
import { exec } from '../adapters/process/exec.ts'
import { onPath } from '../adapters/process/on-path.ts'
import { nearest } from '../core/nearest.ts'

export type Place = { readonly cwd: string; readonly env: NodeJS.ProcessEnv }

/** Why a command cannot run, and what to do about it. */
export interface Fault {
  readonly detail: string
  readonly fix: string
}

/** Undefined where the program is there, or where only a shell could tell which one it is. `meant`: the command with the nearest name. */
export async function noProgram(
  command: string,
  { cwd, env }: Place,
): Promise<{ word: string; near: string | undefined; meant: string } | undefined> {
  const [word] = /^[A-Za-z][\w.+-]*(?=$|[\s;&|<>])/.exec(command.trim()) ?? []
  if (word === undefined || onPath(word, env) !== undefined) return undefined
  // The shell has words of its own, such as `test` and `if`.
  const asked = await exec('/bin/sh', ['-c', 'command -v "$1"', 'sh', word], { cwd, env, timeoutMs: 10_000 })
  if (asked.exitCode !== 127 && asked.exitCode !== 1) return undefined
  const near = nearest(word, programsOn(env), true)
  return { word, near, meant: command.trim().replace(word, near ?? '') }
}

function programsOn(env: NodeJS.ProcessEnv): readonly string[] {
  const names = (env['PATH'] ?? '').split(delimiter).flatMap((folder) => {
    try {
      if (folder === '') return []
      const entries = readdirSync(folder, { withFileTypes: true })
      return entries.flatMap((entry) => (entry.isDirectory() ? [] : [entry.name]))
    } catch {
      // Many a PATH names folders that are not there.
      return []
    }
  })
  // The usual programs first: of equally near ones the first is named.
  const others = names.filter((name) => !coreutils.has(name))
  return [...new Set([...usual.filter((name) => names.includes(name)), ...others])]
}

const usual = [
  'npm',
  'npx',
  'pnpm',
  'yarn',
  'bun',
  'node',
  'make',
  'cargo',
  'go',
  'pytest',
  'python3',
  'deno',
]

/** Nobody mistypes a gate for one of these. */
const coreutils: ReadonlySet<string> = new Set(
  'arch b2sum base32 base64 basename basenc cat chcon chgrp chmod chown chroot cksum comm cp csplit cut date dd df dir dircolors dirname du echo env expand expr factor false fmt fold groups head hostid id install join link ln logname ls md5sum mkdir mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste pathchk pinky pr printenv printf ptx pwd readlink realpath rm rmdir runcon seq sha1sum sha256sum sha512sum shred shuf sleep sort split stat stdbuf stty sum sync tac tail tee test timeout touch tr true truncate tsort tty uname unexpand uniq unlink uptime users vdir wc who whoami yes'.split(
    ' ',
  ),
)
