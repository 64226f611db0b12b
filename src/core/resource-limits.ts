// Limits of an agent's or a gate's use of the machine, and sizes as people write them.

export interface Limits {
  readonly memoryBytes?: number
  /** With threads. */
  readonly processes?: number
  readonly fileBytes?: number
  /** Of all files together: what the disk may lose meanwhile. */
  readonly diskBytes?: number
}

const units = ['K', 'M', 'G', 'T'] as const

/** Of `4G`. */
export function bytesOf(size: string): number {
  const power = units.findIndex((unit) => size.endsWith(unit)) + 1
  return Math.round(Number(size.slice(0, -1)) * 1024 ** power)
}

export function sized(bytes: number): string {
  const power = units.findLastIndex((_, at) => bytes >= 1024 ** (at + 1))
  return power === -1 ? String(bytes) : `${Number((bytes / 1024 ** (power + 1)).toFixed(1))}${units[power]}`
}

export function limitsOf(wish: {
  readonly max_memory?: string
  readonly max_processes?: number
  readonly max_file_size?: string
  readonly max_disk?: string
}): Limits | undefined {
  const { max_memory: memory, max_processes: processes, max_file_size: file, max_disk: disk } = wish
  if ([memory, processes, file, disk].every((limit) => limit === undefined)) return undefined
  return {
    ...(memory !== undefined && { memoryBytes: bytesOf(memory) }),
    ...(processes !== undefined && { processes }),
    ...(file !== undefined && { fileBytes: bytesOf(file) }),
    ...(disk !== undefined && { diskBytes: bytesOf(disk) }),
  }
}
