// The one call of picomatch that is used here; the package has no types of its own.
declare module 'picomatch' {
  export default function picomatch(
    pattern: string,
    options: { readonly posix: boolean; readonly dot?: boolean },
  ): (path: string) => boolean
}
