// A program of the tests as one file that plain Node runs; bundled once for all tests of a file.
import { writeFileSync } from 'node:fs'
import { buildSync } from 'esbuild'

const bundled = new Map<string, string>()

export function bundle(entry: string, outfile: string): void {
  const text = bundled.get(entry) ?? textOf(entry)
  bundled.set(entry, text)
  writeFileSync(outfile, text)
}

function textOf(entry: string): string {
  const { outputFiles } = buildSync({
    entryPoints: [entry],
    write: false,
    bundle: true,
    platform: 'node',
    format: 'esm',
  })
  return outputFiles.map(({ text }) => text).join('')
}
