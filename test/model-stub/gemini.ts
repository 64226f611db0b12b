// Google's generateContent API, as Gemini CLI calls it.
import { usage } from './script.ts'
import { listOf, wordsOf, type Protocol } from './server.ts'

export const gemini: Protocol = {
  matches: (path) => /^\/v1beta\/models\/[^:]+:(?:streamG|g)enerateContent$/.test(path),
  read(body) {
    const declared = listOf(body['tools']).flatMap((tool) => listOf(tool['functionDeclarations']))
    if (!declared.some((tool) => tool['name'] === 'run_shell_command')) return undefined
    const contents = listOf(body['contents'])
    const parts = contents.flatMap((content) => listOf(content['parts']))
    const prompt = contents
      .filter((content) => content['role'] === 'user')
      .map((content) => wordsOf(content['parts']))
      .join('\n')
    const results = parts.filter((part) => part['functionResponse'] !== undefined)
    return { prompt, results: results.length, last: JSON.stringify(results.at(-1) ?? '') }
  },
  answer(step, body) {
    const part =
      step.do === 'say'
        ? { text: step.text }
        : step.do === 'write'
          ? { functionCall: { name: 'write_file', args: { file_path: step.path, content: step.content } } }
          : step.do === 'tool'
            ? { functionCall: { name: nameIn(body, step.name), args: step.input } }
            : {
                functionCall: {
                  name: 'run_shell_command',
                  args: { command: step.command, description: 'run' },
                },
              }
    const event = {
      candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: {
        promptTokenCount: usage.input,
        candidatesTokenCount: usage.output - usage.thought,
        thoughtsTokenCount: usage.thought,
        totalTokenCount: usage.input + usage.output,
        cachedContentTokenCount: usage.cached,
      },
    }
    return `data: ${JSON.stringify(event)}\n\n`
  },
  failure: ({ status, message }) => ({
    error: {
      code: status,
      message,
      status: status === 429 ? 'RESOURCE_EXHAUSTED' : 'UNAVAILABLE',
      ...(status === 429 && { details: [dailyQuota] }),
    },
  }),
}

/** It puts the server's name before a tool's, each version in another way. */
function nameIn(body: Readonly<Record<string, unknown>>, tool: string): string {
  const declared = listOf(body['tools']).flatMap((each) => listOf(each['functionDeclarations']))
  const names = declared.map(({ name }) => (typeof name === 'string' ? name : ''))
  return names.find((name) => name.endsWith(tool)) ?? tool
}

/** Any other limit it would wait for by itself, for minutes. */
const dailyQuota = {
  '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
  violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel' }],
}
