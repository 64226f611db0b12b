// Copies a folder by the bytes of its names: Node's own `cp` fails at one that is not UTF-8, and at a pipe.
import { chmod, copyFile, lstat, mkdir, readdir, readlink, rm, symlink } from './now.ts'

/** Links as they are, modes too; what is there already is written over. Pipes, sockets and devices hold nothing, and are left out. */
export async function copyAll(from: string | Buffer, to: string | Buffer): Promise<void> {
  const stats = await lstat(from)
  if (stats.isDirectory()) {
    await mkdir(to, { recursive: true })
    for (const name of await readdir(from, { encoding: 'buffer' }))
      await copyAll(within(from, name), within(to, name))
    await chmod(to, stats.mode & 0o7777)
  } else if (stats.isSymbolicLink() || stats.isFile()) {
    await rm(to, { force: true })
    if (stats.isFile()) await copyFile(from, to)
    else await symlink(await readlink(from, 'buffer'), to)
  }
}

export function within(folder: string | Buffer, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(folder), Buffer.from('/'), name])
}
