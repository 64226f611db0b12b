// The program in packs, each one script for V8: a command that only looks does not read what only a loop needs.
import { build, transform } from 'esbuild'
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { inkPlugin } from './ink.mjs'

/** What is read together: what is imported on demand and fits, with all that it needs. What fits nowhere is in `loop`. */
const packs = {
  look: /^src\/(program|compose|compose\/(changes|reports|whereabouts|damage)|ui\/(?!cli\/loop-run|cli\/client|cli\/mcp|cli\/queue|mcp\/|print\/report-).*)\.ts$/,
  plan: /^src\/(compose\/(plan|claims|config-trust|run-settings)|adapters\/openspec\/show|config\/(load|yaml))\.ts$/,
  /** Large, and met only where a file is there to read with them: without what they need, which is little and in `look`. */
  parsers: /^node_modules\/(zod|yaml|picomatch)\//,
  prices: /^node_modules\/@pydantic\/genai-prices\//,
  /** Only for who opens the screens; what a loop needs, too, is in `lines`. */
  tui: /^src\/ui\/(tui\/start\.tsx|cli\/client\.ts)$/,
  /** Only for `ralph mcp`: with the protocol's own library. */
  mcp: /^src\/ui\/cli\/mcp\.ts$/,
}

/**
 * esbuild splits into modules, more of them than are worth a file each; and V8 can keep what it made of a script, but not of a module
 * in Node 20. Returns their names, and how those of their files begin.
 */
export async function writePacks(options) {
  const entryPoints = { program: 'src/program.ts' }
  const { metafile, outputFiles } = await build({
    ...options,
    entryPoints,
    format: 'esm',
    splitting: true,
    plugins: [inkPlugin],
    define: { 'process.env.NODE_ENV': '"production"', 'process.env.DEV': '"false"' },
    metafile: true,
    write: false,
  })
  const chunks = packed(metafile.outputs)
  const texts = new Map()
  for (const { path, text } of outputFiles) {
    if (path.endsWith('.LEGAL.txt')) {
      await writeFile(join(options.outdir, 'LEGAL.txt'), text)
      continue
    }
    const chunk = chunks.get(basename(path))
    if (chunk === undefined) throw new Error(`no pack for ${path}`)
    // What is imported on demand as well: with `require`, it comes from a pack.
    const { code } = await transform(text, {
      format: 'cjs',
      platform: 'node',
      target: 'node20',
      supported: { 'dynamic-import': false },
      minifySyntax: true,
      minifyWhitespace: true,
    })
    const named = code.replaceAll(
      /require\("\.\/([\w.-]+\.js)"\)/g,
      (_, file) => `require("${chunks.get(file).id}")`,
    )
    const body = `${JSON.stringify(chunk.id)}:function(exports,require,module){${onDemand(named)}}`
    texts.set(chunk.pack, [...(texts.get(chunk.pack) ?? []), body])
  }
  // One letter outside of ASCII, and V8 holds all of a script in two bytes for each; esbuild leaves them in regular expressions.
  const escaped = (text) =>
    text.replaceAll(
      /[\u0080-\uFFFF]/g,
      (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
  const scripts = [...texts].map(([pack, bodies]) => [pack, escaped(`({${bodies.join(',\n')}})`)])
  const hash = createHash('sha256').update(JSON.stringify(scripts)).digest('hex').slice(0, 8)
  for (const [pack, text] of scripts)
    await writeFile(join(options.outdir, `program-${hash}.${pack}.js`), text)
  return { program: `program-${hash}`, packs: [...texts.keys()] }
}

/** Where each of esbuild's files goes, by its name: into the first pack that cannot do without it. */
function packed(outputs) {
  const placed = new Map()
  const { parsers, tui, mcp, ...others } = packs
  const put = (pack, path) => {
    const name = outputs[path].entryPoint === 'src/program.ts' ? 'program' : placed.size
    placed.set(basename(path), { pack, id: `${pack}:${name}` })
  }
  const place = (pack, path) => {
    if (placed.has(basename(path))) return
    put(pack, path)
    for (const { path: needed, kind } of outputs[path].imports)
      if (kind === 'import-statement' && needed in outputs) place(pack, needed)
  }
  const all = Object.keys(outputs).filter((path) => !path.endsWith('.LEGAL.txt'))
  const entries = (fits) => {
    const found = all.filter((path) => fits.test(outputs[path].entryPoint ?? ''))
    if (found.length === 0) throw new Error(`nothing is imported on demand that fits ${fits}`)
    return found
  }
  const libraries = all.filter((path) => {
    const made = Object.keys(outputs[path].inputs)
    return made.length > 0 && made.every((file) => parsers.test(file))
  })
  for (const path of libraries) put('parsers', path)
  for (const [pack, fits] of Object.entries(others)) {
    for (const path of entries(fits)) place(pack, path)
  }
  const [screens, servers] = [entries(tui), entries(mcp)]
  const faces = [...screens, ...servers]
  const loops = all.filter((path) => outputs[path].entryPoint !== undefined && !faces.includes(path))
  const needed = reached(outputs, loops)
  for (const path of reached(outputs, faces))
    if (needed.has(path) && !placed.has(basename(path))) put('lines', path)
  for (const path of loops) place('loop', path)
  for (const path of screens) place('tui', path)
  for (const path of servers) place('mcp', path)
  for (const path of all) place('loop', path)
  return placed
}

/** With all that they import. */
function reached(outputs, paths) {
  const found = new Set()
  const visit = (path) => {
    if (found.has(path)) return
    found.add(path)
    for (const { path: next, kind } of outputs[path].imports)
      if (kind === 'import-statement' && next in outputs) visit(next)
  }
  for (const path of paths) visit(path)
  return found
}

/** What an empty Node has loaded anyway. */
const always = new Set(
  ['buffer', 'events', 'fs', 'path', 'process', 'timers', 'url', 'util'].map((name) => `node:${name}`),
)

/**
 * Every other module, Node's own and the program's, is loaded where it is used first: `child_process` alone takes a tenth of a start,
 * and most commands never meet a schema. Nothing is loaded for its effects; no module of ours has any.
 */
function onDemand(code) {
  const plain = code.replaceAll(/\(0,\w+\.__require\)\(/g, 'require(')
  let text = plain.replaceAll(/(?<=^|[;{}]|"use strict";)require\("\w+:\w+"\);/gm, '')
  const declared = /\b(\w+)=require\("([\w:/]+)"\)(?=[,;])/g
  for (const [all, name, module] of plain.matchAll(declared)) {
    if (always.has(module)) continue
    const mentions = (pattern) => text.match(new RegExp(`\\b${name}${pattern}`, 'g'))?.length ?? 0
    // Only where each mention but the first is that of a member.
    if (mentions('\\b') !== mentions('\\.') + 1) continue
    text = text
      .replaceAll(new RegExp(`\\b${name}\\.`, 'g'), `(${name}??=require("${module}")).`)
      .replace(all, name)
  }
  return text
}
