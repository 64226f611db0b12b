#!/usr/bin/env node
// The provider does not know the model.
import { failure, init, readPrompt } from './claude-lines.mjs'

await readPrompt()
init()
failure(404, "There's an issue with the selected model (no-such-model).")
process.exitCode = 1
