import type { CheckDecisionResult } from '../../core/contract.js';
import type { JsonObject } from '../../core/json.js';
import type { Decision } from '../../core/requests/decision.js';
import type { RequestKind } from '../../core/requests/request.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { isObject } from '../../core/json.js';
import { show } from '../../core/text/format-value.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { parseArguments } from '../../tools/arguments/arguments.js';
import { checkArguments } from '../../tools/arguments/check-arguments.js';
import { checkCall, digestCall } from '../model/read-call.js';
import { recordCalls } from '../model/record-calls.js';
import { ifUnchanged } from '../tool/pinned-tool.js';
import type { RuleContext } from './evaluate-call.js';

/** A decision about a call, with the data for its check. */
export interface CheckedDecision {
  readonly call: ToolCall;
  readonly decision: Decision;
  readonly kind: RequestKind;
  readonly ruleContext: RuleContext;
  readonly blobs: BlobStore;
}

/**
 * Checks new arguments like those of a model: against the pinned schema, this worker's tool if it
 * has changed, the rules, and the tool's `approval`. Returns the call with the new arguments and
 * its verdict.
 */
export async function checkEdit({
  call,
  decision,
  ruleContext,
  blobs,
}: CheckedDecision): Promise<CheckDecisionResult> {
  const { name, via, safety } = call;
  const { arguments: given } = decision;
  if (!isObject(given)) {
    return refused(`expected all new arguments as an object, got ${show(given)}`);
  }
  const parsed = parseArguments(JSON.stringify(given));
  if (!parsed.ok) return refused(parsed.problem.message);
  const checked = await checkCall(name, parsed.value, { isGivenUp: false, ruleContext });
  if (checked.problem !== undefined) return refused(checked.problem.message);
  const problem = await changedToolProblem(name, parsed.value, ruleContext);
  if (problem !== null) return refused(problem);
  if (checked.verdict?.then === 'deny') {
    return refused(`expected arguments that the rules allow (${checked.verdict.why}); change them`);
  }
  const [edited] = await recordCalls([{ ...digestCall(name, parsed.value), ...checked }], blobs);
  if (edited === undefined || edited.problem !== undefined) {
    return refused(edited?.problem?.message ?? 'they could not be recorded; try again');
  }
  return { ok: true, call: { ...edited, ...(via && { via }), ...(safety && { safety }) } };
}

/**
 * Returns the problem if arguments do not fit a changed tool: a worker with newer code executes
 * only arguments that also fit its own schema.
 */
async function changedToolProblem(
  name: string,
  value: JsonObject,
  { pinned }: RuleContext,
): Promise<string | null> {
  const known = pinned.definition.tools.find((tool) => tool.name === name);
  const current = pinned.tools.get(name);
  if (known?.mcp !== undefined || current === undefined) return null;
  if (known !== undefined && ifUnchanged(known, current) !== undefined) return null;
  const checked = await checkArguments(current, value);
  if (checked.ok) return null;
  return `${checked.problem.message}\n(the tool has changed since the run began)`;
}

function refused(message: string): CheckDecisionResult {
  return { ok: false, message: `arguments: ${message}` };
}
