#!/usr/bin/env node
// An ACP agent whose answer to the prompt is AGENT_ERROR.
import { send, serve } from './acp-lines.mjs'

serve((id) => send({ id, error: JSON.parse(process.env.AGENT_ERROR) }))
