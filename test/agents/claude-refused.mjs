#!/usr/bin/env node
// A permission was refused and it gave up.
import { init, readPrompt, success, text } from './claude-lines.mjs'

await readPrompt()
init()
text('I may not write files.')
success('I may not write files.', {
  permission_denials: [{ tool_name: 'Write', tool_use_id: 't', tool_input: {} }],
})
