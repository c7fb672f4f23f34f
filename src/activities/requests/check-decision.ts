import { Context } from '@temporalio/activity';
import type { z } from 'zod';
import type { Decider } from '../../agents/agent-parts.js';
import { waitUntil } from '../../core/calls/batch.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { unclearAnswer } from '../../core/plan/confirm-plan.js';
import { fieldNames, formLines, withDefaults } from '../../core/requests/server-ask.js';
import type { CheckDecisionInput, CheckDecisionResult } from '../../core/run/contract.js';
import { definedTool, nodeOfCall } from '../../core/state/turn-definition.js';
import { type Json, type JsonObject, isJsonObject, isObject } from '../../core/text/json.js';
import { printable, show } from '../../core/text/text.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import type { Decision, Request } from '../../core/transcript/request.js';
import { parseWithZod } from '../../output/parse-output.js';
import { checkOrSkip } from '../../output/schema-check.js';
import { toZodType } from '../../output/schemas.js';
import { redactJson, redactMessage } from '../../secrets/redact.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { parseArguments } from '../../tools/arguments/arguments.js';
import { checkArguments } from '../../tools/arguments/check-arguments.js';
import { guarded } from '../../tools/errors.js';
import { normalizeError, toPlain } from '../../tools/result/plain.js';
import { describeIssues } from '../../validation/check-options.js';
import { likelyMeant } from '../../validation/near-names.js';
import { type ActivityDependencies, readRunContext } from '../activity-context.js';
import { toRunIds, withHeartbeat } from '../attempt.js';
import { contractSchema } from '../model/answer-formats.js';
import { checkCall, digestCall, recordCalls } from '../model/reply-calls.js';
import { queryWorkflow } from '../prompt.js';
import { reportLoss, trackStore, withStorageMapping } from '../storage-faults.js';
import { ifUnchanged } from '../tool/mcp-tool.js';
import { recordResult, serializeResult } from '../tool/tool-result.js';
import { type RuleContext, createRuleContext } from './evaluate-call.js';

/** A decision about a call, with the data for its check. */
interface CheckedDecision {
  readonly call: ToolCall;
  readonly decision: Decision;
  readonly request: Request;
  readonly ruleContext: RuleContext;
  readonly blobs: BlobStore;
}

/**
 * Checks new arguments like those of a model: against the pinned schema, this worker's tool if it
 * has changed, the rules, and the tool's `approval`. Returns the call with the new arguments and
 * its verdict.
 */
async function checkEdit({
  call,
  decision,
  ruleContext,
  blobs,
}: CheckedDecision): Promise<CheckDecisionResult> {
  const { name, via, safety } = call;
  const { arguments: given } = decision;
  if (!isObject(given)) {
    return refusedArguments(`expected all new arguments as an object, got ${show(given)}`);
  }
  const parsed = parseArguments(JSON.stringify(given));
  if (!parsed.ok) return refusedArguments(parsed.problem.message);
  const checked = await checkCall(name, parsed.value, { isGivenUp: false, ruleContext });
  if (checked.problem !== undefined) return refusedArguments(checked.problem.message);
  const problem =
    (await changedToolProblem(name, parsed.value, ruleContext)) ??
    waitMisfit(name, parsed.value, ruleContext);
  if (problem !== null) return refusedArguments(problem);
  if (checked.verdict?.then === 'deny') {
    return refusedArguments(
      `expected arguments that the rules allow (${checked.verdict.why}); change them`,
    );
  }
  const [edited] = await recordCalls([{ ...digestCall(name, parsed.value), ...checked }], blobs);
  if (edited === undefined || edited.problem !== undefined) {
    return refusedArguments(edited?.problem?.message ?? 'they could not be recorded; try again');
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

/** Returns what is wrong with a wait that begins now; null for any other tool. */
function waitMisfit(name: string, value: JsonObject, { pinned }: RuleContext): string | null {
  if (definedTool(pinned.definition, name)?.kind !== 'wait') return null;
  const until = waitUntil(JSON.stringify(value), Date.now());
  return typeof until === 'number' ? null : until.problem;
}

function refusedArguments(message: string): CheckDecisionResult {
  return { ok: false, message: `arguments: ${message}` };
}

/**
 * Checks a result from a person or the caller, and records it as the tool's result. It must fit the
 * tool's `output`, and the answer to a question must be a text. The result of a tool with `ends`
 * must also fit the agent's output.
 */
async function checkSuppliedAnswer({
  call,
  decision,
  request: { kind },
  ruleContext,
  blobs,
}: CheckedDecision): Promise<CheckDecisionResult> {
  const { result } = decision;
  const { cancellationSignal: signal, log } = Context.current();
  const tool = definedTool(ruleContext.pinned.definition, call.name);
  if (tool === undefined)
    return refusedResult(`expected none: the agent has no tool ${show(call.name)}`);
  if (result === undefined)
    return refusedResult('expected the result of the call, got none; give it');
  if (kind === 'question' || tool.kind === 'question') {
    if (typeof result !== 'string' || result.trim() === '') {
      return refusedResult(`expected a text that answers the question, got ${show(result)}`);
    }
    const unclear = nodeOfCall(call) === null ? null : unclearAnswer(call.arguments, result);
    if (unclear !== null) return refusedResult(unclear);
  }
  const checked = await checkResult(result, tool, ruleContext);
  if (!checked.ok) return refusedResult(checked.problem);
  const warn = (message: string): void => log.warn(redactMessage(message));
  const { name, effect } = tool;
  const serialized = await serializeResult(checked.output, { name, effect, signal, warn });
  const store = trackStore(blobs);
  const recorded = await recordResult(tool, serialized, store.blobs);
  const reports = reportLoss(Context.current(), `the result given for ${name} (${call.id})`, store);
  return { ok: true, result: { ...recorded, ...(reports.length > 0 && { reports }) } };
}

/**
 * Checks the answer to what an MCP server asks. The fields of a form must be its own and fit its schema;
 * those that are missing get their defaults. For an address, any text says that the person is done.
 */
async function checkServerAnswer({
  decision: { result },
  request: { form },
}: CheckedDecision): Promise<CheckDecisionResult> {
  if (form === undefined) return { ok: true, answer: { action: 'accept' } };
  if (!isJsonObject(result)) {
    return refusedResult(`expected an object with the fields of the form, got ${show(result)}`);
  }
  const fields = formLines(form).map((line) => `- ${line}`);
  const refused = (problem: string) =>
    refusedResult([`${problem} The fields are:`, ...fields].join('\n'));
  const unknown = unknownField(result, form);
  if (unknown !== null) return refused(unknown);
  const content = withDefaults(result, form);
  const { fault, skipped } = await checkOrSkip(form, content, 'the answer');
  if (skipped !== undefined) {
    return refusedResult(`it could not be checked now, because ${skipped}; try again`);
  }
  if (fault === null) return { ok: true, answer: { action: 'accept', content } };
  return refused(`${fault}.`);
}

/**
 * Returns what is wrong with a field that a form does not have, or null. Without the refusal, the server
 * would get the default of the field that was meant.
 */
function unknownField(given: JsonObject, form: JsonObject): string | null {
  if (form['additionalProperties'] !== undefined && form['additionalProperties'] !== false)
    return null;
  const known = fieldNames(form);
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  const meant = likelyMeant(unknown, known);
  const fix = meant === undefined ? 'omit it.' : `did you mean ${show(meant)}?`;
  return `expected only fields of the form, got ${show(unknown)}; ${fix}`;
}

type Checked =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly problem: string };

/**
 * Validates a result against the tool's `output`, then against that of the agent. Never rejects.
 */
async function checkResult(
  result: Json,
  tool: ToolDefinition,
  ruleContext: RuleContext,
): Promise<Checked> {
  try {
    const schema = outputOf(tool, ruleContext);
    const checked =
      schema === null ? ({ ok: true, output: result } as const) : await parse(schema, result);
    const contract = tool.ends ? contractSchema(ruleContext.pinned) : null;
    if (contract === null || !checked.ok) return checked;
    return await parseWithZod(contract, toPlain(checked.output));
  } catch (error) {
    return { ok: false, problem: `it cannot be checked: ${normalizeError(error).message}` };
  }
}

/** Returns this worker's form of the tool's output, else the pinned one; null if any value fits. */
function outputOf(tool: ToolDefinition, { pinned }: RuleContext): z.ZodType | null {
  const current = tool.mcp === undefined ? pinned.tools.get(tool.name)?.output : undefined;
  return current ?? (tool.result === undefined ? null : toZodType(tool.result));
}

async function parse(schema: z.ZodType, value: Json): Promise<Checked> {
  const checked = await guarded('the output schema of a tool', () => schema.safeParseAsync(value));
  if (!checked.ok) return { ok: false, problem: `it cannot be checked: ${checked.message}` };
  if (checked.value.success) return { ok: true, output: checked.value.data };
  const lines = describeIssues(checked.value.error.issues, value, { root: 'the whole result' });
  return { ok: false, problem: ['it does not fit the tool:', ...lines].join('\n') };
}

function refusedResult(message: string): CheckDecisionResult {
  return { ok: false, message: `result: ${message}` };
}

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
  const checked = { call, decision, request: input.request, ruleContext, blobs: deps.blobs };
  if (decision.as === 'edit') return await checkEdit(checked);
  if (input.request.server !== undefined) return await checkServerAnswer(checked);
  return await checkSuppliedAnswer(checked);
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
