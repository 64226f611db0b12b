// Token and cost figures of one iteration, and how they add up.
import { z } from 'zod'

export const usageSchema = z.object({
  input_tokens: z.number().int().nonnegative(),
  output_tokens: z.number().int().nonnegative(),
  cache_read_tokens: z.number().int().nonnegative(),
  cache_creation_tokens: z.number().int().nonnegative(),
  /** The agent's own figure; absent when it gave none ("unpriced" is never 0). */
  cost_usd: z.number().nonnegative().optional(),
})
export type UsageFigures = z.infer<typeof usageSchema>
