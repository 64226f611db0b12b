import { defineConfig } from 'vitest/config'

export default defineConfig({
  define: { RALPH_VERSION: JSON.stringify('0.0.0-test') },
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 3,
  },
})
