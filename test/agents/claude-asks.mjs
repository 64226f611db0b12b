#!/usr/bin/env node
// Asks the user by its own tool and ends its turn (P12).
import { init, readPrompt, success, tool } from './claude-lines.mjs'

await readPrompt()
init()
tool('AskUserQuestion', { question: 'Tabs or spaces?' })
success('I need an answer.')
