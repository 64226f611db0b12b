#!/usr/bin/env node
// One line of 20 MB without a break, COMPLETE at its end (P5).
process.stdin.resume()
process.stdout.write('x'.repeat(20 * 1024 * 1024), () =>
  process.stdout.write(' <promise>COMPLETE</promise>', () => process.exit(0)),
)
