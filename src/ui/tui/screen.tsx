// The view on the terminal: a row for each line. Everything else was decided before.
import { Box, Text } from 'ink'
import { memo } from 'react'
import type { ReactElement } from 'react'

/** Most rows stay as they are from one picture to the next. */
const Row = memo(function Row({ text }: { readonly text: string }): ReactElement {
  // A row without a character would have no height.
  return <Text wrap="truncate-end">{text === '' ? ' ' : text}</Text>
})

export function Screen({ rows }: { readonly rows: readonly string[] }): ReactElement {
  return (
    <Box flexDirection="column">
      {rows.map((text, at) => (
        // A row is its place.
        <Row key={at} text={text} />
      ))}
    </Box>
  )
}
