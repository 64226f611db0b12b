// What to do about a program that could not be started.
import { expect, test } from 'vitest'
import { startHint } from '../../../src/adapters/process/fault.ts'

test.each(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'])('R14: %s is no reason to install anything', (code) => {
  expect(startHint(Object.assign(new Error('spawn git'), { code }), 'Install git')).toContain('ulimit -a')
})

test('a program that is not there is to be installed', () => {
  expect(startHint(Object.assign(new Error('spawn git'), { code: 'ENOENT' }), 'Install git')).toBe(
    'Install git',
  )
})
