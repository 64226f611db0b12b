// docs/performance.md is written from the results: by hand nobody changes it, and no missed goal goes without a word.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { page, type Results } from '../bench/page.ts'
import { rows } from '../bench/rows.ts'

const read = (path: string): string => readFileSync(resolve(import.meta.dirname, '..', path), 'utf8')

test('the page on performance is what the last results say (npm run bench -- --page writes it)', () => {
  const results = JSON.parse(read('bench/results.json')) as Results
  expect(read('docs/performance.md')).toBe(page(results))
  const missed = results.rows.filter(({ is_met: isMet }) => !isMet).map(({ name }) => name)
  expect(rows.filter(({ name, missing }) => missed.includes(name) && missing === '')).toEqual([])
})
