// `npm run changelog`: writes CHANGELOG.md from the changesets of the next release. The first release has its summary only: nobody ever had what
// the other changesets fix.
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
const shown = names.includes(first) ? [first] : names
const parts = ['# Changes', `## ${version}`, ...shown.map(bodyOf)]
writeFileSync(join(root, 'CHANGELOG.md'), `${parts.join('\n\n')}\n`)
