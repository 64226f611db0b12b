#!/usr/bin/env node
// Invalid UTF-8, CRLF, U+2028, and a token that arrives byte by byte (P5).
process.stdin.resume()
process.stdout.write(Buffer.from([0xff, 0xfe, 0xc3]))
for (const byte of Buffer.from('日本語\u2028 fine\r\n<promise>COMPLETE</promise>\r\n')) {
  await new Promise((resolve) => process.stdout.write(Buffer.from([byte]), resolve))
}
process.exit(0)
