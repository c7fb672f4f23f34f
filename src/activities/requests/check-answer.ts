import type { z } from 'zod';
import { Context } from '@temporalio/activity';
import type { CheckDecisionResult } from '../../core/contract.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import {
  PLAN_WORDS,
  readPlanAnswer,
  readYesOrNo,
  shownActions,
} from '../../core/plan/confirm-plan.js';
import { definedTool, nodeOfCall } from '../../core/graph/node-tool.js';
import { type Json } from '../../core/json.js';
import { show } from '../../core/text/format-value.js';
import { toZodType } from '../../output/foreign-patterns.js';
import { parseWithZod } from '../../output/parse-zod.js';
import { redactMessage } from '../../secrets/redact.js';
import { guarded } from '../../tools/guard.js';
import { toPlain } from '../../tools/result/plain.js';
import { describeIssues } from '../../validation/describe-issues.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import { contractSchema } from '../model/answer.js';
import { reportLoss, trackStore } from '../storage-faults.js';
import { recordResult, serializeResult } from '../tool/tool-result.js';
import type { CheckedDecision } from './check-edit.js';
import type { RuleContext } from './evaluate-call.js';

/**
 * Checks a result from a person or the caller, and records it as the tool's result. It must fit the
 * tool's `output`, and the answer to a question must be a text. The result of a tool with `ends`
 * must also fit the agent's output.
 */
export async function checkSuppliedAnswer({
  call,
  decision,
  kind,
  ruleContext,
  blobs,
}: CheckedDecision): Promise<CheckDecisionResult> {
  const { result } = decision;
  const { cancellationSignal: signal, log } = Context.current();
  const tool = definedTool(ruleContext.pinned.definition, call.name);
  if (tool === undefined) return refused(`expected none: the agent has no tool ${show(call.name)}`);
  if (result === undefined) return refused('expected the result of the call, got none; give it');
  if (kind === 'question' || tool.kind === 'question') {
    if (typeof result !== 'string' || result.trim() === '') {
      return refused(`expected a text that answers the question, got ${show(result)}`);
    }
    const unclear = nodeOfCall(call) === null ? null : unclearAnswer(call, result);
    if (unclear !== null) return refused(unclear);
  }
  const checked = await checkResult(result, tool, ruleContext);
  if (!checked.ok) return refused(checked.problem);
  const warn = (message: string): void => log.warn(redactMessage(message));
  const { name, effect } = tool;
  const serialized = await serializeResult(checked.output, { name, effect, signal, warn });
  const store = trackStore(blobs);
  const recorded = await recordResult(tool, serialized, store.blobs);
  const reports = reportLoss(Context.current(), `the result given for ${name} (${call.id})`, store);
  return { ok: true, result: { ...recorded, ...(reports.length > 0 && { reports }) } };
}

/** Returns what a `confirm` node expects if the answer is something else; null if it is clear. */
function unclearAnswer({ arguments: json }: CheckedDecision['call'], text: string): string | null {
  const planned = shownActions(json);
  if (planned === null) {
    return readYesOrNo(text) === null ? `expected "yes" or "no", got ${show(text)}` : null;
  }
  if (readPlanAnswer(text, planned) !== null) return null;
  return `${PLAN_WORDS}, got ${show(text)}; the actions are ${planned.map(({ id }) => id).join(', ')}`;
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

function refused(message: string): CheckDecisionResult {
  return { ok: false, message: `result: ${message}` };
}
