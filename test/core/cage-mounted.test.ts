// Whether a cage that stands already is what its words say.
import { expect, test } from 'vitest'
import { isAsMade } from '../../src/core/cage-mounted.ts'

const words =
  '--ro-bind / / --dev /dev --proc /proc --bind /t /tmp --bind /w /w --ro-bind /w/a\tb /w/a\tb --perms 0555 --tmpfs /home/.config'.split(
    ' ',
  )
const made = [
  '1 0 8:1 / / ro,nosuid - ext4 /dev/vda rw',
  '2 1 0:5 / /dev rw - tmpfs tmpfs rw',
  '3 1 0:6 / /proc rw - proc proc rw',
  '4 1 8:1 /t /tmp rw,nosuid shared:1 - ext4 /dev/vda rw',
  '5 1 8:1 /w /w rw - ext4 /dev/vda rw',
  '6 5 8:1 /w/a\\011b /w/a\\011b ro - ext4 /dev/vda rw',
  '7 1 0:7 / /home/.config rw - tmpfs tmpfs rw,mode=555',
  '8 1 0:8 / /mnt ro - nfs there rw',
  '9 5 0:9 / /w/disk rw - ext4 /dev/vdb rw',
]

const but = (line: number, text?: string): string =>
  made
    .map((each, at) => (at === line ? text : each))
    .filter((each) => each !== undefined)
    .join('\n')

test('a cage is used only as it was made: nothing is missing, and nothing can be written besides', () => {
  expect(isAsMade(words, `${made.join('\n')}\n`)).toBe(true)
  const others = [
    '',
    // Somebody has replaced what was protected, or what was hidden.
    but(5),
    but(6),
    but(3, '4 1 8:1 /t//deleted /tmp rw,nosuid shared:1 - ext4 /dev/vda rw'),
    but(5, made[5]?.replace(' ro ', ' rw ')),
    but(6, made[6]?.replaceAll('tmpfs', 'ext4')),
    // Somebody has mounted something.
    but(7, '8 1 0:8 / /mnt rw - nfs there rw'),
  ]
  expect(others.map((mountinfo) => isAsMade(words, mountinfo))).toEqual(others.map(() => false))
})
