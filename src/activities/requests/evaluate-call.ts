import type { Info } from '@temporalio/activity';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import type { Json, JsonObject } from '../../core/text/json.js';
import { ruleVerdict, strictest, type Rule, type Verdict } from '../../core/definition/rules.js';
import { show } from '../../core/text/text.js';
import { redactMessage } from '../../secrets/redact.js';
import { guarded } from '../../tools/errors.js';
import { toPlain } from '../../tools/result/plain.js';
import type { ApprovalContext, ApprovalPredicate } from '../../tools/tool.js';
import type { PinnedAgent, RequestDependencies } from '../activity-context.js';
import { ifUnchanged } from '../tool/mcp-tool.js';
import { toRunIds } from '../attempt.js';

/** A call whose arguments have been checked. */
interface CheckedCall {
  /** The run's pinned definition of the tool. */
  readonly tool: ToolDefinition;
  /** The original arguments. */
  readonly original: JsonObject;
  /** The arguments as parsed by the tool's `input`. */
  readonly parsed: unknown;
}

/** The inputs of the verdicts on one run's calls, in addition to the tools' own checks. */
export interface RuleContext {
  readonly pinned: PinnedAgent;
  /** The rules of the worker, the agent, and the run. */
  readonly rules: readonly Rule[];
  readonly context: ApprovalContext;
}

interface RuleContextSource {
  readonly requests: Pick<RequestDependencies, 'rules'>;
  readonly pinned: PinnedAgent;
  readonly input: {
    readonly turn: number;
    readonly step: number;
    readonly rules?: readonly Rule[];
  };
  readonly info: Info;
  readonly userContext: Json;
}

export function createRuleContext({
  requests,
  pinned,
  input,
  info,
  userContext,
}: RuleContextSource): RuleContext {
  const { turn, step, rules = [] } = input;
  return {
    pinned,
    rules: [...requests.rules, ...(pinned.definition.rules ?? []), ...rules],
    context: { run: { ...toRunIds(info), turn, step }, context: userContext },
  };
}

/**
 * Returns the verdict of the rules and the tool's `approval` on a call; null if they allow it.
 * Never rejects: a failed check requires approval. `givenUp`: why the tool's check must not be run.
 */
export async function evaluateCall(
  call: CheckedCall,
  ruleContext: RuleContext,
  { givenUp }: { readonly givenUp?: string } = {},
): Promise<Verdict | null> {
  // The run's state answers these calls, without side effects.
  if (call.tool.kind === 'artifacts') return null;
  return strictest([
    evaluateRules(call, ruleContext.rules),
    await evaluateApproval(call, ruleContext, givenUp),
  ]);
}

/**
 * Returns the rules' verdict on a call. A rule applies if it matches the original or the parsed
 * arguments, because defaults and conversions of `input` may change the effect.
 */
export function evaluateRules(
  { tool, original, parsed }: CheckedCall,
  rules: readonly Rule[],
): Verdict | null {
  if (rules.length === 0) return null;
  const { name, effect } = tool;
  const values = [original, toPlain(parsed)];
  return strictest(values.map((value) => ruleVerdict(rules, { tool: name, effect, value })));
}

/**
 * Returns the verdict of the rules that deny a call now: those of the worker, and those of its
 * current agent. They may have changed since the model requested the call or a person approved it.
 */
export function currentDenial(
  call: CheckedCall,
  { requests, pinned }: Pick<RuleContextSource, 'requests' | 'pinned'>,
): Verdict | null {
  const verdict = evaluateRules(call, [...requests.rules, ...(pinned.agent?.rules ?? [])]);
  return verdict?.then === 'deny' ? verdict : null;
}

/**
 * Applies the rules to an undo as to a call. If a person approved it, only the current `deny`
 * rules still apply.
 */
export async function evaluateUndo(
  call: CheckedCall,
  ruleContext: RuleContext,
  { requests, isApproved }: Pick<RuleContextSource, 'requests'> & { readonly isApproved: boolean },
): Promise<Verdict | null> {
  if (!isApproved) return await evaluateCall(call, ruleContext);
  return currentDenial(call, { requests, pinned: ruleContext.pinned });
}

async function evaluateApproval(
  { tool, parsed }: CheckedCall,
  { pinned, context }: RuleContext,
  givenUp: string | undefined,
): Promise<Verdict | null> {
  const current = tool.mcp === undefined ? pinned.tools.get(tool.name) : undefined;
  const approval = current?.approval ?? 'never';
  if (approval === 'never' && tool.approval === undefined) return null;
  if (approval === 'always') return ask('the tool requires approval of every call');
  const isPinned = tool.approval !== undefined && ifUnchanged(tool, current) !== undefined;
  if (!isPinned || approval === 'never') {
    return ask(
      current === undefined
        ? 'the tool requires approval, but this worker does not have its approval check'
        : 'the tool or its approval check has changed since the run began',
    );
  }
  if (givenUp !== undefined) return ask(`the approval check of the tool: ${givenUp}`);
  return await runPredicate(tool.name, () => approval(parsed, context));
}

async function runPredicate(
  name: string,
  work: () => ReturnType<ApprovalPredicate<unknown>>,
): Promise<Verdict | null> {
  const result = await guarded<unknown>(`approval of tool "${name}"`, work);
  if (!result.ok) return ask(`the approval check of the tool failed: ${result.message}`);
  if (result.value === false) return null;
  if (result.value === true) return ask('the tool requires approval of this call');
  return ask(
    `the approval check of the tool returned ${show(result.value)} instead of true or false`,
  );
}

const MAX_WHY_CHARACTERS = 300;

function ask(why: string): Verdict {
  return { then: 'ask', why: redactMessage(why).slice(0, MAX_WHY_CHARACTERS) };
}
