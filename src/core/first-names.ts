// A list of names in one sentence, which stays one however many there are: "a, b and 3 more".
export function firstNames(names: readonly string[], most = 5): string {
  const rest = names.length - most
  return `${names.slice(0, most).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}
