import { Context } from '@temporalio/activity';
import type { Decider } from '../../agents/requests.js';
import type { Json } from '../../core/json.js';
import type { CheckDecisionInput, CheckDecisionResult } from '../../core/contract.js';
import { printable } from '../../core/text/hidden.js';
import { show } from '../../core/text/format-value.js';
import { redactJson } from '../../secrets/redact-json.js';
import { redactMessage } from '../../secrets/redact.js';
import { guarded } from '../../tools/guard.js';
import type { ActivityDependencies } from '../dependencies.js';
import { withHeartbeat } from '../heartbeat.js';
import { queryWorkflow } from '../query-workflow.js';
import { readRunContext } from '../run-context.js';
import { withStorageMapping } from '../storage-faults.js';
import { toRunIds } from '../tool/user-function.js';
import { checkSuppliedAnswer } from './check-answer.js';
import { checkEdit } from './check-edit.js';
import { createRuleContext } from './evaluate-call.js';

const MAX_MESSAGE_CHARACTERS = 4_000;

/**
 * Checks a decision before it takes effect: whether the worker's `mayDecide` allows it, and the
 * parts of an edit or an answer that only a worker can check. An invalid decision is refused with a
 * message; the activity does not fail.
 */
export async function checkDecision(
  deps: ActivityDependencies,
  input: CheckDecisionInput,
): Promise<CheckDecisionResult> {
  const context = Context.current();
  return await withHeartbeat(context, async () => {
    const result = redactJson(await check(deps, context, input));
    if (result.ok) return result;
    const message = printable(redactMessage(result.message));
    return { ok: false, message: message.slice(0, MAX_MESSAGE_CHARACTERS) };
  });
}

async function check(
  deps: ActivityDependencies,
  context: Context,
  input: CheckDecisionInput,
): Promise<CheckDecisionResult> {
  const { decision, call } = input;
  const { info } = context;
  const userContext = await withStorageMapping({}, () => readRunContext(input, deps.blobs));
  const problem = await deciderProblem(deps, {
    ...input,
    run: { ...toRunIds(info), turn: input.turn },
    context: userContext,
  });
  if (problem !== null) return { ok: false, message: problem };
  if (decision.as !== 'edit' && decision.as !== 'answer') return { ok: true };
  if (call === undefined) {
    const message = `as: expected a decision about a call, got ${show(decision.as)} for a limit; give raise or stop`;
    return { ok: false, message };
  }
  const pinned = await deps.definitions.find(input.definition, () =>
    queryWorkflow(context, deps).definition(),
  );
  const ruleContext = createRuleContext({ ...deps, pinned, input, info, userContext });
  const checked = { call, decision, kind: input.request.kind, ruleContext, blobs: deps.blobs };
  return await (decision.as === 'edit' ? checkEdit(checked) : checkSuppliedAnswer(checked));
}

interface Decides {
  readonly run: Decider['run'];
  readonly context: Json;
}

/** Returns why the worker does not let this person decide, or null. */
async function deciderProblem(
  { requests }: ActivityDependencies,
  {
    request,
    decision,
    run,
    context,
    mayDecide: isNeeded,
  }: Omit<CheckDecisionInput, 'context'> & Decides,
): Promise<string | null> {
  const { mayDecide } = requests;
  const by = decision.by ?? null;
  if (mayDecide === undefined) {
    if (isNeeded !== true) return null;
    return 'by: expected a decider allowed by `mayDecide`, but this worker has no `mayDecide`; give it to all workers';
  }
  const allowed = await guarded<unknown>('mayDecide', () =>
    mayDecide(request, { by, decision, run, context }),
  );
  if (allowed.ok && allowed.value === true) return null;
  const expected = `by: expected a decider allowed by \`mayDecide\`, got ${show(by)}`;
  if (!allowed.ok) return `${expected}; it failed: ${allowed.message}`;
  if (allowed.value === false) return `${expected}; another person must decide`;
  return `${expected}; it returned ${show(allowed.value)} instead of true or false`;
}
