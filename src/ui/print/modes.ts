// What the screens switch on in a terminal, and how that is taken back.
import { popTitle } from './title.ts'

export const clearBytes = '\u001B[2J\u001B[H'
/** Alternate screen, clear, no cursor; mouse wheel as SGR; pastes told from typing. */
export const enterBytes = `\u001B[?1049h${clearBytes}\u001B[?25l\u001B[?1000h\u001B[?1006h\u001B[?2004h`
const backBytes = '\u001B[?2004l\u001B[?1006l\u001B[?1000l\u001B[?25h\u001B[?1049l'
/** Cleared first: in a window that was resized meanwhile tmux puts what stood here among the user's own lines. */
export const leaveBytes = `${clearBytes}${backBytes}`
/** Of one who cannot do it any more. Nobody knows which screen is shown by then: none is cleared. */
export const orphanedBytes = `\u001B[0m${backBytes}${popTitle}`
