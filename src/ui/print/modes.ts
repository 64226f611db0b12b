// What the screens switch on in a terminal, and how that is taken back.
import { popTitle } from './title.ts'

/** Alternate screen, clear; mouse wheel as SGR; pastes told from typing. */
export const enterBytes = '\u001B[?1049h\u001B[2J\u001B[H\u001B[?1000h\u001B[?1006h\u001B[?2004h'
export const leaveBytes = '\u001B[?2004l\u001B[?1006l\u001B[?1000l\u001B[?25h\u001B[?1049l'
/** Of one who cannot do it any more. */
export const orphanedBytes = `\u001B[0m${leaveBytes}${popTitle}`
