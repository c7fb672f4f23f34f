import { withTurn } from '../change.js';
import { definedTool, nodeOfCall } from '../graph/node-tool.js';
import { needsConsent } from '../requests/consent.js';
import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import type { Batch, Turn } from '../turn.js';
import type { CallResult } from './call-result.js';
import { shortSignature } from './idempotency.js';

/** Returns why a call is denied without a request; null if it is not. */
export function denial(state: RunState, call: ToolCall): string | null {
  const { verdict } = call;
  if (verdict?.then === 'deny') return verdict.why;
  if (state.turn.denied?.includes(shortSignature(call))) {
    return 'an identical call was denied earlier in this turn, and people are asked only once';
  }
  if (state.unattended !== 'deny') return null;
  const kind = definedTool(state.config.definition, call.name)?.kind;
  const asks = needsConsent(state, call);
  if (!asks && call.safety === undefined && kind !== 'question' && kind !== 'client') return null;
  const why = verdict === undefined ? '' : ` (${verdict.why})`;
  return `it needs a decision, and this run is unattended${why}`;
}

/** The number of consecutive denied calls after which the turn ends. */
export const DENIALS = 3;

/** The number of denied calls that a turn remembers. All are passed from segment to segment. */
const REMEMBERED = 1_000;

/** Returns the changes that a result makes to the turn's count of denied calls. */
export function countDenials(
  { turn }: RunState,
  call: ToolCall,
  { denied, executed }: CallResult,
): Partial<Turn> {
  const { denials = 0 } = turn;
  if (!denied) return executed && denials > 0 ? { denials: 0 } : {};
  const signatures = [...new Set([...(turn.denied ?? []), shortSignature(call)])];
  return {
    denied: signatures.slice(-REMEMBERED),
    denials: denials + 1,
    ...(denials + 1 >= DENIALS && { limit: turn.limit ?? 'denied' }),
  };
}

/**
 * Counts the denied tool calls of a graph's node. A visit counts once, regardless of its number of
 * calls.
 */
export function countVisitDenials(state: RunState, { calls, results }: Batch): RunState {
  const made = calls.flatMap((call, index) => {
    const result = results[index];
    return result && nodeOfCall(call) === null ? [{ call, result }] : [];
  });
  const denied = made.filter(({ result }) => result.denied);
  const [first] = denied;
  if (first === undefined) {
    const executed = made.some(({ result }) => result.executed);
    return executed && state.turn.denials ? withTurn(state, { denials: 0 }) : state;
  }
  const counted = withTurn(state, countDenials(state, first.call, first.result));
  const signatures = denied.map(({ call }) => shortSignature(call));
  const all = [...new Set([...(counted.turn.denied ?? []), ...signatures])];
  return withTurn(counted, { denied: all.slice(-REMEMBERED) });
}
