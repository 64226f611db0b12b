// What decides which file holds the boxes (OpenSpec's config, and the schema that it names): put back where it would now say another one.
import { relative } from 'node:path'
import { lstatIfThere } from '../files/whole.ts'
import { isRuleFile, type Guarded, type GuardedTree, type GuardPlaces } from './guard.ts'
import { taskPattern } from './project.ts'
import { ifItWasYou, restoreTree, setAside } from './restore.ts'

/** One sentence for each that is put back. Where the answer is the same, what was written there is the agent's work, and stays. */
export async function restoreRules(
  { root, changeDir, guardDir, env }: GuardPlaces,
  { rules }: Guarded,
  isTheirs: (path: string) => boolean = () => false,
): Promise<string[]> {
  if (rules === undefined) return []
  // What cannot be read is no answer at all.
  const now = await taskPattern(root, changeDir, env).catch(() => '')
  if (now === rules.pattern) return []
  const sentences: string[] = []
  for (const tree of rules.trees) {
    if (isTheirs(tree.base)) continue
    const aside = await restoreRule(guardDir, tree)
    const inside = relative(root, tree.base)
    if (aside !== undefined)
      sentences.push(
        `${inside.startsWith('..') ? tree.base : inside} was changed, and would have made ${now || 'another file'} the plan instead of ${rules.pattern}; put back${ifItWasYou(aside, tree.base)}`,
      )
  }
  return sentences
}

/** Where what stood there is kept; undefined when nothing had to be changed. */
async function restoreRule(guardDir: string, tree: GuardedTree): Promise<string | undefined> {
  if (tree.entries.length > 0) return (await restoreTree(guardDir, tree))[0]?.aside
  const now = await lstatIfThere(tree.base)
  // A folder that has come is harmless; a link in its place leads elsewhere.
  const isIn = now !== undefined && (isRuleFile(tree.base) || now.isSymbolicLink())
  return isIn ? setAside(guardDir, tree.base) : undefined
}
