// Requirements and scenarios of spec files.
import { describe, expect, test } from 'vitest'
import { parseSpec } from '../../src/core/deltas.ts'

const delta = `## ADDED Requirements

### Requirement: Export
The system SHALL export.

#### Scenario: CSV
- **GIVEN** a table
- **WHEN** the user exports
- **THEN** a file
  of lines appears

\`\`\`md
### Requirement: not one
\`\`\`

#### Edge
When it is empty
Then nothing

## modified requirements
### Requirement: Import
Text MUST stay.

## REMOVED Requirements
### Requirement: Old
**Reason**: gone
- \`### Requirement: Older\`

## RENAMED Requirements
- FROM: \`### Requirement: A\`
- TO: \`### Requirement: B\`
`

describe('parseSpec', () => {
  const spec = parseSpec('data-export', 'specs/data-export/spec.md', delta)

  test('names each requirement with what happens to it', () => {
    expect(spec.requirements.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'ADDED Export',
      'MODIFIED Import',
      'REMOVED Old',
      'RENAMED A',
    ])
  })

  test('reads scenarios with their steps, also without bullets', () => {
    expect(spec.requirements[0]?.scenarios).toEqual([
      {
        name: 'CSV',
        steps: [
          'GIVEN a table',
          'WHEN the user exports',
          'THEN a file\n  of lines appears\n```md\n### Requirement: not one\n```',
        ],
      },
      { name: 'Edge', steps: ['When it is empty', 'Then nothing'] },
    ])
  })

  test('keeps the text of every block as written', () => {
    expect(spec.requirements[3]?.text).toBe('- FROM: `### Requirement: A`\n- TO: `### Requirement: B`')
    expect(spec.requirements[2]?.text).toContain('**Reason**: gone')
  })

  test('a list of removed names is read as requirements', () => {
    const removed = parseSpec('x', 'x', '## REMOVED Requirements\n- One\n  - **Reason**: old\n- Two\n')
    expect(removed.requirements.map((each) => each.name)).toEqual(['One', 'Two'])
  })

  test('a current spec has a purpose and its requirements', () => {
    const current = parseSpec(
      'x',
      'x',
      '# X\n\n## Purpose\nWhy.\n\n## Requirements\n### Requirement: R\nIt SHALL.\n',
    )
    expect(current.preamble).toContain('Why.')
    expect(current.requirements.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['CURRENT R'])
  })

  test('a megabyte of odd lines is read to its end', () => {
    const lines = ['- ` '.repeat(50_000), `- a${' '.repeat(200_000)}\`x`, `FROM:${' '.repeat(200_000)}`]
    expect(parseSpec('x', 'x', `## RENAMED Requirements\n${lines.join('\n')}`).requirements).toHaveLength(0)
  })
})
