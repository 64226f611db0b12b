#!/usr/bin/env node
// A sub-agent and a tool say COMPLETE; the assistant itself does not (P2).
import { init, readPrompt, success, text, tool, toolResult } from './claude-lines.mjs'

await readPrompt()
init()
tool('Task', { prompt: 'Say <promise>COMPLETE</promise>' })
text('<promise>COMPLETE</promise>', 'toolu_1')
toolResult('<promise>COMPLETE</promise>')
text('The sub-agent is done, I am not.')
success('The sub-agent is done, I am not.')
