import { nameArtifacts } from '../calls/artifacts.js';
import { notExecuted } from '../calls/batch.js';
import type { ExecuteNode, FailedDependency } from '../definition/node-data.js';
import { withTurn } from '../state/change.js';
import { type GraphState, type RunState, keepsEarlierMeaning } from '../state/state.js';
import { currentNode, nodeCallId } from '../state/turn-definition.js';
import { type Batch, getOpenBatch } from '../state/turn.js';
import { type CallWork, findWork, hasBegun, withoutWork } from '../state/work.js';
import {
  type Json,
  type JsonObject,
  canonicalJson,
  isJsonObject,
  isObject,
  parseJson,
  sha256Hex,
} from '../text/json.js';
import { type CallResult, refusal } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';
import {
  type ActionResult,
  type PlannedAction,
  type Referred,
  type Referring,
  needsOf,
  planDigest,
  planIn,
  resolveReferences,
} from './plan.js';
import { actionResult, referred } from './results.js';

/** Separates the visit from the action in a call's id. No action id contains it. */
const SEPARATOR = '.';

/** Returns the id of the action that a call executes. */
export function actionOf({ id }: Pick<ToolCall, 'id'>): string {
  return id.slice(id.indexOf(SEPARATOR) + 1);
}

/**
 * Returns a call for each action that has no result yet. A call that depends on others lists them
 * in `after` and keeps its references until they finish.
 */
export function planCalls(
  node: ExecuteNode & { readonly name: string },
  graph: GraphState,
): readonly ToolCall[] {
  const { values, confirmed } = graph;
  const plan = planIn(values, node.plan);
  const before = resultsIn(values, node);
  const isConfirmed = confirmed?.digest === planDigest(plan);
  const place = `${nodeCallId(node.name, graph)}${SEPARATOR}`;
  return plan.actions.flatMap((action): readonly ToolCall[] => {
    if (before.has(action.id)) return [];
    const after = needsOf(action).filter((id) => !before.has(id));
    const resolved = resolveReferences(action, valuesOf(before));
    const { arguments: given, refs } = resolved.ok ? resolved : action;
    // A call without dependencies has no open references, so all of its arguments are data.
    const referring = { arguments: given, ...(after.length > 0 && refs && { refs }) };
    const call = withArguments({ id: `${place}${action.id}`, name: action.tool }, referring);
    const failed = needsOf(action).find((id) => before.get(id)?.ok === false);
    const skipped = failed === undefined ? null : failedBefore(failed);
    const fault = resolved.ok ? skipped : resolved.problem;
    return [
      {
        ...call,
        node: node.name,
        ...(action.parsed && { parsed: action.parsed }),
        // The description was made from the references, not from what they refer to.
        ...(action.shown !== undefined &&
          canonicalJson(given) === canonicalJson(action.arguments) && { summary: action.shown }),
        ...(fault !== null && { problem: { type: 'invalid_arguments', message: fault } }),
        ...(after.length > 0 && { after: after.map((id) => `${place}${id}`) }),
        ...consentOf(action, { isConfirmed, shown: confirmed?.actions ?? [] }),
      },
    ];
  });
}

/** Returns the error of an action that is skipped because one that it needs has failed. */
export function failedBefore(id: string): string {
  return `not executed: it needs ${id}, which has failed`;
}

/**
 * Returns the approval fields of a call. A confirmed call needs no further approval. If its
 * arguments were completed after the rules were evaluated, a worker evaluates the call again, as it
 * does for a call that needed no approval.
 */
function consentOf(
  { id, asks, late }: PlannedAction,
  { isConfirmed, shown }: { readonly isConfirmed: boolean; readonly shown: readonly string[] },
): Pick<ToolCall, 'verdict' | 'confirmed' | 'asks' | 'asShown'> {
  const isShown = isConfirmed && shown.includes(id);
  // What the tool gets was not known when the plan was made if the arguments had references.
  if (asks === undefined) return isShown && !late ? { asShown: true } : {};
  const evaluated = late ? ({ asks: true } as const) : { verdict: asks };
  return isShown ? { ...evaluated, confirmed: true } : evaluated;
}

/** Maximum characters of all results of a plan in the state, and the minimum for each result. */
const MAX_RESULTS = 400_000;
const MIN_RESULT = 1_000;

/**
 * Returns the value that an `execute` node saves: each result under its action's id, along with
 * those of earlier visits. Long results are cut so that all fit; dependent actions have received
 * them in full, and those that begin after an interruption cannot refer to what was cut.
 */
export function resultsOf(
  { graph, config }: Pick<RunState, 'graph' | 'config'>,
  { save }: ExecuteNode,
  results: readonly CallResult[],
): JsonObject {
  const { values = {} } = graph ?? {};
  const isEarlier = config.revised !== true;
  const before = Object.hasOwn(values, save) ? values[save] : undefined;
  const characters = Math.max(MIN_RESULT, MAX_RESULTS / Math.max(1, results.length));
  const ended = results.map((result): [string, Json] => {
    return [actionOf(result), { ...actionResult(result, { characters, isEarlier }) }];
  });
  return Object.fromEntries([...(isObject(before) ? Object.entries(before) : []), ...ended]);
}

/** Returns the results that an `execute` node saved earlier, and those of its plan's reads. */
function resultsIn(values: JsonObject, node: ExecuteNode): ReadonlyMap<string, ActionResult> {
  const saved = Object.hasOwn(values, node.save) ? values[node.save] : undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as the node has saved them
  const ended = isObject(saved) ? (Object.entries(saved) as [string, ActionResult][]) : [];
  const reads = planIn(values, node.plan).done.map(({ id, result }) => [id, result] as const);
  return new Map([...reads, ...ended]);
}

function valuesOf(results: ReadonlyMap<string, ActionResult>): ReadonlyMap<string, Referred> {
  return new Map([...results].map(([id, result]) => [id, referred(result)]));
}

function withArguments<Call extends object>(
  call: Call,
  { arguments: given, refs }: Referring,
): Call & Pick<ToolCall, 'arguments' | 'digest' | 'refs'> {
  const json = canonicalJson(given);
  return { ...call, arguments: json, digest: sha256Hex(json), ...(refs && { refs }) };
}

/** How actions are handled after a failure, and whether a call can still be stopped. */
interface Policy {
  readonly onFailed: FailedDependency;
  /** See `keepsEarlierMeaning`; default: false. */
  readonly earlier?: boolean;
  /** The run has not got `revised`; default: false. */
  readonly isEarlier?: boolean;
  readonly hasBegun: (call: ToolCall) => boolean;
}

/** Maximum characters of one call's arguments after its references have been filled in. */
const MAX_ARGUMENTS = 256 * 1024;

/**
 * Where each call of a plan is. All events of a plan of 200 actions look for the calls that others
 * need, and none of them changes the places.
 */
const known = new WeakMap<Batch['calls'], ReadonlyMap<string, number>>();

function placesOf({ calls }: Batch): ReadonlyMap<string, number> {
  const places = known.get(calls) ?? new Map(calls.map(({ id }, place) => [id, place]));
  known.set(calls, places);
  return places;
}

/**
 * Releases the calls whose dependencies have finished, with references replaced by results. Calls
 * that can no longer run get a result. References lead only backward, so one pass is enough.
 */
export function releaseReadyCalls(batch: Batch, policy: Policy): Batch {
  const { onFailed, hasBegun: begun } = policy;
  const calls = [...batch.calls];
  const results = [...batch.results];
  const places = placesOf(batch);
  known.set(calls, places);
  const resultOf = (id: string): CallResult | null => results[places.get(id) ?? -1] ?? null;
  let hasFailed = onFailed === 'fail' && results.some((result) => result?.ok === false);
  for (const [place, call] of calls.entries()) {
    if (results[place] !== null) continue;
    if (hasFailed && !begun(call)) {
      results[place] = notExecuted(call, 'an action of the plan has failed');
      continue;
    }
    if (call.problem !== undefined) results[place] = refusal(call.id, call.problem);
    else if (call.after?.every((id) => resultOf(id) !== null)) {
      const ended = call.after.flatMap((id) => resultOf(id) ?? []);
      const next = afterResults(call, ended, policy);
      if ('ok' in next) results[place] = next;
      else calls[place] = next;
    }
    hasFailed ||= onFailed === 'fail' && results[place]?.ok === false;
  }
  return { ...batch, calls, results };
}

/** Returns the call with complete arguments, or a result if it cannot run. */
function afterResults(
  call: ToolCall,
  ended: readonly CallResult[],
  { onFailed, earlier = false, isEarlier = false }: Policy,
): ToolCall | CallResult {
  const failed = ended.find(({ ok }) => !ok);
  // A call that needs approval never runs after a failed dependency.
  if (failed !== undefined && (onFailed !== 'null' || call.asks || call.verdict)) {
    return notExecuted(call, `it needs ${actionOf(failed)}, which has failed`);
  }
  const { after: _, refs, ...ready } = call;
  const given = parseJson(call.arguments);
  const values = new Map(
    ended.map((result) => [
      actionOf(result),
      referred(actionResult(result, { isEarlier }), earlier),
    ]),
  );
  const referring = { arguments: isJsonObject(given) ? given : {}, ...(refs && { refs }) };
  const resolved = resolveReferences(referring, values);
  if (!resolved.ok) {
    return refusal(call.id, { type: 'invalid_arguments', message: resolved.problem });
  }
  const filled = withArguments(ready, { arguments: resolved.arguments });
  const { summary: _summary, ...undescribed } = filled;
  const complete = filled.digest === call.digest ? filled : undescribed;
  const { length } = complete.arguments;
  if (length <= MAX_ARGUMENTS) return complete;
  return notExecuted(call, `its arguments have ${length} characters, at most ${MAX_ARGUMENTS} fit`);
}

/**
 * Releases the actions of a plan whose dependencies have finished, and ends those that can no
 * longer run.
 */
export function advancePlan(state: RunState): RunState {
  const node = currentNode(state);
  if (node?.kind !== 'execute') return state;
  // Actions refer to artifacts by name, so names are assigned without waiting for earlier actions.
  const named = nameArtifacts(state, getOpenBatch(state)?.calls.length);
  const batch = getOpenBatch(named);
  if (batch === null) return state;
  const { onFailedDependency: onFailed } = node;
  const advanced = releaseReadyCalls(batch, {
    onFailed,
    earlier: keepsEarlierMeaning(state, {}),
    isEarlier: state.config.revised !== true,
    hasBegun: ({ id }) => isUnderWay(findWork(named, id)),
  });
  // A call with a result needs no decision.
  const over = advanced.calls.filter(
    (_, index) => advanced.results[index] !== null && batch.results[index] === null,
  );
  const withoutOver = over.reduce((before, { id }) => withoutWork(before, id), named);
  return withTurn(withoutOver, { phase: { type: 'acting', batch: advanced } });
}

/** Whether a call has begun. One that only waits for a decision has not. */
function isUnderWay(work: CallWork | undefined): boolean {
  return work !== undefined && (work.phase === 'in-flight' || hasBegun(work));
}
