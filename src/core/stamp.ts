// The moment that a time in the state file or the journal names.
const stampPattern = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|([+-])(\d\d):?(\d\d))$/

/** Of a stamp with its offset, by arithmetic alone because core has no clock; 0 for anything else. */
export function epochMs(stamp: string): number {
  const match = stampPattern.exec(stamp)
  if (match === null) return 0
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number)
  const offset = (Number(match[8] ?? 0) * 60 + Number(match[9] ?? 0)) * (match[7] === '-' ? -1 : 1)
  // Years from March, so that the leap day comes last: the days before a month are then one formula.
  const y = month > 2 ? year : year - 1
  const monthFromMarch = (month + 9) % 12
  const leapDays = Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400)
  const days = y * 365 + leapDays + Math.floor((153 * monthFromMarch + 2) / 5) + day - 1 - 719_468
  return ((days * 24 + hour) * 60 + minute - offset) * 60_000 + second * 1000
}
