// A program of the tests as one file that plain Node runs; bundled once for all tests of a file. As CommonJS, without zod's blanks and
// comments: hundreds of them are started, and each takes half as long.
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
    format: 'cjs',
    minify: true,
    lineLimit: 200,
  })
  return outputFiles.map(({ text }) => text).join('')
}
