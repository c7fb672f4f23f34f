import { notExecuted } from '../calls/batch.js';
import { closeBatch } from '../calls/complete-batch.js';
import { withTurn } from '../change.js';
import type { RecordedReply } from '../reply.js';
import type { RunState } from '../state.js';
import { batchOf } from '../turn.js';
import { leaveWith } from './finish-node.js';
import { currentNode, isOfDecide } from './node-tool.js';
import { leave } from './walk.js';

/**
 * Applies the decision of a `decide` node: a call, or a text. `acting` has the call's batch open. The
 * calls of a message that leads elsewhere are not executed.
 */
export function followDecision(
  state: RunState,
  { reply, at }: { readonly reply: RecordedReply; readonly at: number },
): RunState {
  const node = currentNode(state);
  const batch = batchOf(state);
  if (node?.kind !== 'decide') return state;
  if (batch === null) {
    const deciding = withTurn(state, { phase: { type: 'deciding' } });
    return leaveWith(deciding, node, {
      exit: 'text',
      patch: node.save === undefined ? {} : { [node.save]: reply.text },
      at,
    });
  }
  const [call] = batch.calls;
  const exit = node.exits.find(({ name }) => name === call?.name);
  // The model reads the reason as the call's result, and decides again.
  if (exit === undefined)
    return closeBatch(state, at, (one) => notExecuted(one, 'the graph has no exit for this tool'));
  const left = leave(state, { exit: exit.name, at });
  const next = currentNode(left);
  if (next?.kind === 'tool' && isOfDecide(next) && next.tool === call?.name) return left;
  const closed = closeBatch(state, at, (one) => notExecuted(one, 'the graph went on without it'));
  return leave(closed, { exit: exit.name, at });
}
