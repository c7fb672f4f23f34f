import { definedTool } from '../graph/node-tool.js';
import { needsConsent } from '../requests/consent.js';
import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import { shortSignature } from './idempotency.js';

/** Returns why a call is denied without asking anybody; null if it is not. */
export function denial(state: RunState, call: ToolCall): string | null {
  const { verdict } = call;
  if (verdict?.then === 'deny') return verdict.why;
  if (state.turn.denied?.includes(shortSignature(call))) {
    return 'this call was denied before in this turn, and is not asked for again';
  }
  if (state.unattended !== 'deny') return null;
  const kind = definedTool(state.config.definition, call.name)?.kind;
  const asks = needsConsent(state, call);
  if (!asks && call.safety === undefined && kind !== 'question' && kind !== 'client') return null;
  return `it needs a person, and nobody is there to decide (${verdict?.why ?? 'unattended run'})`;
}
