// Colours and styles of a terminal, or none.

const codes = {
  bold: [1, 22],
  dim: [2, 22],
  inverse: [7, 27],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const satisfies Record<string, readonly [number, number]>

export type Paint = Readonly<Record<keyof typeof codes, (text: string) => string>> & {
  readonly isColorSupported: boolean
}

export function paintWith(isColorSupported: boolean): Paint {
  const styles = Object.entries(codes).map(([name, [on, off]]) => {
    const [begin, end] = [`\u001B[${String(on)}m`, `\u001B[${String(off)}m`]
    // What ends inside ends there only: bold and dim end with the same code.
    const again = off === 22 ? end + begin : begin
    const style = (text: string): string => `${begin}${text.replaceAll(end, again)}${end}`
    return [name, isColorSupported ? style : (text: string) => text] as const
  })
  return { ...(Object.fromEntries(styles) as Omit<Paint, 'isColorSupported'>), isColorSupported }
}
