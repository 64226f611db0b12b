// The user's git identity as variables, for agents whose tools do not see the user's git configuration.
import { exec } from '../process/exec.ts'

export async function gitIdentity(cwd: string, env: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const [name, email] = await Promise.all(['user.name', 'user.email'].map((key) => configured(key, cwd, env)))
  if (name === undefined || name === '' || email === undefined || email === '') return {}
  const found = {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  }
  // What the user exports is stronger.
  return Object.fromEntries(Object.entries(found).filter(([key]) => env[key] === undefined))
}

async function configured(key: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const result = await exec('git', ['config', '--get', key], { cwd, env, timeoutMs: 5000 })
  return result.exitCode === 0 ? result.stdout.toString('utf8').trim() : ''
}
