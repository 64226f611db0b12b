#!/usr/bin/env node
// Takes the prompt for a command of its own: success, exit code 0, no model call (P14).
import { init, readPrompt, success } from './claude-lines.mjs'

await readPrompt()
init()
success('Unknown command: /do', { num_turns: 0, modelUsage: {} })
