#!/usr/bin/env node
// Says COMPLETE and leaves with exit code 0, without the result that ends a turn (R10).
import { init, readPrompt, text } from './claude-lines.mjs'

await readPrompt()
init()
text('<promise>COMPLETE</promise>')
