// The screen of a terminal as a small PNG: its cells as SVG, drawn with a pinned font, and packed with a palette.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { crc32, deflateSync } from 'node:zlib'
import type { IBufferCell, Terminal } from '@xterm/headless'

export type Theme = 'dark' | 'light'

interface Colours {
  readonly back: string
  readonly text: string
  /** As the terminal numbers them: black, red, green, yellow, blue, magenta, cyan, white. */
  readonly named: readonly string[]
}

const themes: Readonly<Record<Theme, Colours>> = {
  dark: {
    back: '#16181d',
    text: '#d5d8de',
    named: ['#3b4048', '#e5727a', '#7ec16e', '#d9b25f', '#6aa3e8', '#c58ad9', '#58b9c9', '#d5d8de'],
  },
  light: {
    back: '#fbfbfa',
    text: '#24292f',
    named: ['#24292f', '#cf222e', '#1a7f37', '#9a6700', '#0969da', '#8250df', '#1b7c83', '#6e7781'],
  },
}

const cell = { width: 9, height: 18, font: 15, base: 13.5 }
const margin = 9

// --- cells as SVG -----------------------------------------------------------------------------------------------

export function svgOf(terminal: Terminal, theme: Theme): string {
  const { cols, rows } = terminal
  const { back } = themes[theme]
  const [width, height] = [cols * cell.width + 2 * margin, rows * cell.height + 2 * margin]
  const buffer = terminal.buffer.active
  const drawn: string[] = []
  for (let y = 0; y < rows; y += 1) {
    const line = buffer.getLine(buffer.viewportY + y)
    for (let x = 0; x < cols; x += 1) {
      const at = line?.getCell(x)
      if (at !== undefined && at.getWidth() > 0) drawn.push(cellSvg(at, x, y, themes[theme]))
    }
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="DejaVu Sans Mono" font-size="${cell.font}"><rect width="100%" height="100%" fill="${back}"/>${drawn.join('')}</svg>`
}

function cellSvg(at: IBufferCell, x: number, y: number, colours: Colours): string {
  const [left, top] = [margin + x * cell.width, margin + y * cell.height]
  const width = at.getWidth() * cell.width
  const own = at.isFgDefault() ? colours.text : (colours.named[at.getFgColor() % 8] ?? colours.text)
  const [ink, paper] = at.isInverse() !== 0 ? [colours.back, own] : [own, undefined]
  const behind =
    paper === undefined
      ? ''
      : `<rect x="${left}" y="${top}" width="${width}" height="${cell.height}" fill="${paper}"/>`
  const char = at.getChars()
  if (char === '' || char === ' ') return behind
  const look = `fill="${ink}"${at.isDim() !== 0 ? ' opacity="0.6"' : ''}`
  const shape = shapes[char]?.(left, top)
  if (shape !== undefined) return `${behind}<path d="${shape}" ${look}/>`
  if (char === '░')
    return `${behind}<rect x="${left}" y="${top + 3}" width="${cell.width}" height="${cell.height - 6}" fill="${ink}" opacity="0.25"/>`
  const weight = at.isBold() !== 0 ? ' font-weight="bold"' : ''
  return `${behind}<text x="${left}" y="${top + cell.base}" ${look}${weight}>${escaped(char)}</text>`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

const [midX, midY] = [4, 8]
const box = (x: number, y: number, width: number, height: number): string =>
  `M${x} ${y}h${width}v${height}h${-width}z`

/** Lines that meet from one cell to the next, whatever a font makes of them. */
const shapes: Readonly<Record<string, (left: number, top: number) => string>> = {
  '─': (left, top) => box(left, top + midY, cell.width, 1),
  '│': (left, top) => box(left + midX, top, 1, cell.height),
  '╭': (left, top) =>
    box(left + midX, top + midY + 3, 1, cell.height - midY - 3) +
    box(left + midX + 3, top + midY, cell.width - midX - 3, 1) +
    `M${left + midX} ${top + midY + 3}q0 -3 3 -3v1q-2 0 -2 2z`,
  '╮': (left, top) =>
    box(left + midX, top + midY + 3, 1, cell.height - midY - 3) +
    box(left, top + midY, midX - 2, 1) +
    `M${left + midX + 1} ${top + midY + 3}q0 -3 -3 -3v1q2 0 2 2z`,
  '╰': (left, top) =>
    box(left + midX, top, 1, midY - 2) +
    box(left + midX + 3, top + midY, cell.width - midX - 3, 1) +
    `M${left + midX} ${top + midY - 2}q0 3 3 3v-1q-2 0 -2 -2z`,
  '╯': (left, top) =>
    box(left + midX, top, 1, midY - 2) +
    box(left, top + midY, midX - 2, 1) +
    `M${left + midX + 1} ${top + midY - 2}q0 3 -3 3v-1q2 0 2 -2z`,
  '█': (left, top) => box(left, top + 3, cell.width, cell.height - 6),
}

// --- SVG as pixels ----------------------------------------------------------------------------------------------

interface Drawn {
  readonly width: number
  readonly height: number
  readonly pixels: Uint8Array
}

export type Draw = (svg: string) => Buffer

/** Pinned, in a folder of the project's own that git ignores: nobody needs them but for this. */
const packages = {
  '@resvg/resvg-js': '2.6.2',
  'dejavu-fonts-ttf': '2.37.3',
  '@expo-google-fonts/m-plus-1p': '0.4.2',
  '@expo-google-fonts/noto-emoji': '0.4.7',
}

export function drawer(): Draw {
  const prefix = resolve(import.meta.dirname, '../.cache/pictures')
  if (!Object.keys(packages).every((name) => existsSync(join(prefix, 'node_modules', name)))) {
    mkdirSync(prefix, { recursive: true })
    console.log('installing what draws the pictures into .cache/pictures (34 MB) …')
    const names = Object.entries(packages).map(([name, version]) => `${name}@${version}`)
    const options = ['--prefix', prefix, '--no-save', '--no-audit', '--no-fund', '--loglevel=error']
    const { status } = spawnSync('npm', ['install', ...options, ...names], { cwd: prefix, stdio: 'inherit' })
    if (status !== 0) throw new Error('what draws the pictures could not be installed')
  }
  const { Resvg } = createRequire(join(prefix, 'package.json'))('@resvg/resvg-js') as {
    Resvg: new (svg: string, options: object) => { render(): Drawn }
  }
  const fonts = [
    'dejavu-fonts-ttf/ttf/DejaVuSansMono.ttf',
    'dejavu-fonts-ttf/ttf/DejaVuSansMono-Bold.ttf',
    'dejavu-fonts-ttf/ttf/DejaVuSans.ttf',
    '@expo-google-fonts/m-plus-1p/400Regular/MPLUS1p_400Regular.ttf',
    '@expo-google-fonts/noto-emoji/400Regular/NotoEmoji_400Regular.ttf',
  ].map((name) => join(prefix, 'node_modules', name))
  const font = { fontFiles: fonts, loadSystemFonts: false, defaultFontFamily: 'DejaVu Sans Mono' }
  return (svg) => packed(new Resvg(svg, { font }).render())
}

// --- pixels as PNG ----------------------------------------------------------------------------------------------

/** With at most 64 colours: text needs no more, and a picture is a third of the size. */
const mostColours = 64

function packed({ width, height, pixels }: Drawn): Buffer {
  const counts = new Map<number, number>()
  const rounded = new Uint32Array(width * height)
  for (let at = 0; at < rounded.length; at += 1) {
    const colour =
      ((pixels[at * 4] ?? 0) << 16) | ((pixels[at * 4 + 1] ?? 0) << 8) | (pixels[at * 4 + 2] ?? 0)
    rounded[at] = colour
    counts.set(colour, (counts.get(colour) ?? 0) + 1)
  }
  const palette = paletteOf(counts)
  const numbers = new Map([...counts.keys()].map((colour) => [colour, nearest(palette, colour)]))
  const rows = Buffer.alloc(height * (width + 1))
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1)
      rows[y * (width + 1) + 1 + x] = numbers.get(rounded[y * width + x] ?? 0) ?? 0
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  // Eight bits for each pixel, which are a number in the palette.
  head.set([8, 3, 0, 0, 0], 8)
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', head),
    chunk('PLTE', Buffer.from(palette.flatMap(channels))),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

const channels = (colour: number): number[] => [colour >> 16, (colour >> 8) & 255, colour & 255]

/** The most frequent ones, none too near to another. */
function paletteOf(counts: ReadonlyMap<number, number>): readonly number[] {
  const palette: number[] = []
  const byCount = [...counts].toSorted(([, a], [, b]) => b - a)
  for (const [colour] of byCount) {
    if (palette.length === mostColours) break
    if (palette.every((known) => distance(known, colour) > 300)) palette.push(colour)
  }
  return palette
}

function nearest(palette: readonly number[], colour: number): number {
  let best = 0
  for (let at = 1; at < palette.length; at += 1)
    if (distance(palette[at] ?? 0, colour) < distance(palette[best] ?? 0, colour)) best = at
  return best
}

function distance(one: number, other: number): number {
  const [a, b] = [channels(one), channels(other)]
  return a.reduce((sum, value, at) => sum + (value - (b[at] ?? 0)) ** 2, 0)
}

function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body) >>> 0)
  return Buffer.concat([length, body, sum])
}
