// Finds the promise in what the assistant said: a pure, incremental scanner of its lines.

export type PromiseFound =
  | { readonly kind: 'complete' }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'none' }
