// What a scripted model answers: a step is chosen from the request alone, so that parallel runs need no state.

export type Step =
  | { readonly do: 'write'; readonly path: string; readonly content: string }
  | { readonly do: 'shell'; readonly command: string }
  | { readonly do: 'say'; readonly text: string }
  /** One of the tools that ralph itself offers, by its private server unless another one is named. */
  | {
      readonly do: 'tool'
      readonly server?: 'ralph'
      readonly name: string
      readonly input: Readonly<Record<string, unknown>>
    }
  | {
      readonly do: 'fail'
      readonly status: number
      readonly message: string
      readonly headers?: Readonly<Record<string, string>>
      /** Epoch seconds, for providers that say in the body when a limit ends. */
      readonly resetsAt?: number
    }
  /** Accepts the request and never answers. */
  | { readonly do: 'hang' }

/** One model call, whatever its protocol. */
export interface ModelCall {
  /** All words of the user's messages. */
  readonly prompt: string
  /** How many tool results the conversation holds: where in the script it is. */
  readonly results: number
  /** What the last of them says. */
  readonly last: string
  /** Whether it may call the tools that ralph itself offers. */
  readonly hasClaims: boolean
  /** Model calls of this server before this one. */
  readonly before: number
}

export type Script = (call: ModelCall) => Step

/** The n-th step after n tool results; the last one stands for all that follow. */
export function steps(...list: readonly Step[]): Script {
  return ({ results }) => list[Math.min(results, list.length - 1)] ?? { do: 'say', text: '' }
}

/** Of one call. The output holds what was thought, the input what came from the cache. */
export const usage = { input: 1000, output: 50, thought: 10, cached: 200 }
