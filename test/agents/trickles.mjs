#!/usr/bin/env node
// Prints a dot now and then, for ever: never idle, never done.
process.stdin.resume()
setInterval(() => process.stdout.write('.\n'), 50)
