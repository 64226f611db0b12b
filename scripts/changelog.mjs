// `npm run changelog`: writes CHANGELOG.md from the changesets of the release that is to come; the first release has them all.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './install.mjs'

const folder = join(root, '.changeset')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const bodyOf = (name) =>
  readFileSync(join(folder, name), 'utf8')
    .replace(/^---\n[^]*?\n---\n/, '')
    .trim()
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.md') && name !== 'README.md')
  .toSorted()
const first = 'first-release.md'
const details = names.filter((name) => name !== first).map(bodyOf)
const parts = [
  '# Changes',
  `## ${version}`,
  ...(names.includes(first) ? [bodyOf(first), '### In detail'] : []),
  ...details,
]
writeFileSync(join(root, 'CHANGELOG.md'), `${parts.join('\n\n')}\n`)
