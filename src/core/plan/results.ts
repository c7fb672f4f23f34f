import { findTool, notExecuted } from '../calls/batch.js';
import type { PlanNode } from '../definition/node-data.js';
import type { RunState } from '../state/state.js';
import type { Batch } from '../state/turn.js';
import { type Json, type JsonObject, errorIn, isObject, parseJson } from '../text/json.js';
import { headOf } from '../text/text.js';
import type { CallResult } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';
import {
  type ActionResult,
  type Plan,
  type PlannedAction,
  type Reference,
  type Referred,
  askingProblem,
  openRefs,
  planIn,
  planProblem,
  refsIn,
  resolveReferences,
} from './plan.js';

/** Number of characters kept of an oversized value. */
const HEAD = 2_000;

/**
 * Returns the value, or only the beginning of its JSON as text if that is longer than `characters`.
 */
export function cutValue(value: Json, characters: number): Json {
  const json = typeof value === 'string' ? value : JSON.stringify(value);
  if (json.length <= characters) return value;
  const head = headOf(json, Math.min(HEAD, characters));
  return `${head}… [cut: ${json.length} characters]`;
}

const MAX_ERROR = 1_000;

/** How a result is kept. */
interface Kept {
  /** Maximum characters of its value as JSON; default: all of them. */
  readonly characters?: number;
  /** The run is that of an earlier version, which passed on what was left of a long value. */
  readonly isEarlier?: boolean;
}

/** Returns an action's result. It says whether only a part of its value is left. */
export function actionResult(
  result: CallResult,
  { characters = Infinity, isEarlier = false }: Kept = {},
): ActionResult {
  const { ok, output, text, artifactName, blob, lost } = result;
  if (!ok) {
    const { type, message } = errorIn(text);
    return { ok, error: { type, message: message.slice(0, MAX_ERROR) } };
  }
  const whole = output ?? text;
  const value = cutValue(whole, characters);
  // A result in the blob store has only its beginning and its end here.
  const isPart = blob !== undefined || lost !== undefined || value !== whole;
  const isCut = isPart && !isEarlier;
  // The value of a tool that ends a turn is used directly, even if it also has an artifact.
  const isArtifact = output === undefined && artifactName !== undefined;
  return {
    ok,
    value,
    ...(isArtifact && { artifact: artifactName }),
    ...(isCut && !isArtifact && { cut: true, ...(lost !== undefined && { lost }) }),
  };
}

/**
 * Returns the target of a reference to the action. `earlier`: null is then all that a failed action
 * has, so that a path into it leads nowhere; see `keepsEarlierMeaning`.
 */
export function referred(result: ActionResult, earlier = false): Referred {
  if (!result.ok) return earlier ? { value: null } : { failed: true };
  const { value, artifact, cut, lost } = result;
  if (cut) return { cut, ...(lost !== undefined && { lost }) };
  return artifact === undefined ? { value } : { artifact };
}

/**
 * Records the calls of a planner's message as actions instead of executing them. Reads that the
 * rules allow are executed at once, because the planner needs their results.
 */
export function noteActions(
  state: RunState,
  node: PlanNode,
  batch: Batch,
): { readonly plan: Plan; readonly batch: Batch } {
  let plan = planIn(state.graph?.values ?? {}, node.save);
  const results = batch.calls.map((call, index): CallResult | null => {
    const known = batch.results[index] ?? null;
    if (known !== null || isRead(state, call)) return known;
    const written = argumentsOf(call);
    if (written === null || call.parsed?.blob !== undefined)
      return notExecuted(call, 'its arguments are too long for a plan');
    if (findTool(state, call.name)?.kind === 'wait') return notExecuted(call, 'a plan cannot wait');
    // Results of reads are filled in now, so the person who decides sees them.
    const filled = resolveReferences({ arguments: written }, valuesOf(plan));
    if (!filled.ok) return notExecuted(call, filled.problem);
    const { ok: _, ...given } = filled;
    const action: PlannedAction = {
      id: nextId(plan),
      tool: call.name,
      ...given,
      ...(call.parsed && { parsed: call.parsed }),
      ...(call.summary !== undefined && { shown: call.summary }),
      ...(call.verdict && { asks: call.verdict }),
      ...(refsIn(written).length > 0 && { late: true }),
    };
    const actions = [...plan.actions, action];
    const { maxActions } = node;
    const bounds = { tools: [...toolNames(plan), call.name], maxActions };
    const refsOf = (one: object): readonly Reference[] =>
      openRefs(actions.find((noted) => noted === one) ?? action);
    const problem = planProblem({ actions }, { ...bounds, refsOf }) ?? askingProblem(actions);
    if (problem !== null) return notExecuted(call, problem.replace(/^actions\[\d+\]:? ?/, ''));
    plan = { ...plan, actions, asks: plan.asks || action.asks !== undefined };
    return { id: call.id, ok: true, text: notedText(action), executed: false };
  });
  return { plan, batch: { ...batch, results } };
}

/** Adds a message's executed reads to the plan. */
export function noteReads(
  plan: Plan,
  { calls, results }: Pick<Batch, 'calls' | 'results'>,
  { isEarlier }: Pick<Kept, 'isEarlier'>,
): Plan {
  const kept = { characters: MAX_READ, ...(isEarlier && { isEarlier }) };
  const reads = calls.flatMap((call, index) => {
    const result = results[index];
    const given = argumentsOf(call);
    if (!result?.executed || !result.ok || given === null) return [];
    return [{ tool: call.name, arguments: given, result: actionResult(result, kept) }];
  });
  const done = [...plan.done];
  for (const read of reads) {
    if (done.length < MAX_READS) done.push({ id: `r${done.length + 1}`, ...read });
  }
  return { ...plan, done };
}

/** Maximum reads in a plan, and characters of each result. The planner saw all of them. */
const MAX_READS = 50;
const MAX_READ = 8_000;

function valuesOf({ done }: Plan): ReadonlyMap<string, Referred> {
  return new Map(done.map(({ id, result }) => [id, referred(result)]));
}

/** Whether a call only gathers information. This includes a question to a person. */
function isRead(state: RunState, call: ToolCall): boolean {
  const tool = findTool(state, call.name);
  const asks = call.verdict !== undefined;
  const finds = tool?.kind === undefined ? tool?.effect === 'read' : READING.has(tool.kind);
  return finds && !asks && refsIn(argumentsOf(call)).length === 0;
}

const READING: ReadonlySet<string> = new Set(['question', 'artifacts']);

/** Returns the arguments of a call; null if they are in a blob. */
function argumentsOf({ blob, arguments: json }: ToolCall): JsonObject | null {
  const value = blob === undefined ? parseJson(json) : undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsed from JSON
  return isObject(value) ? (value as JsonObject) : null;
}

function nextId({ actions }: Plan): string {
  return `a${actions.length + 1}`;
}

function toolNames({ actions }: Plan): readonly string[] {
  return actions.map(({ tool }) => tool);
}

function notedText({ id, asks }: PlannedAction): string {
  const consent = asks === undefined ? '' : ' The user will be asked to approve it.';
  return (
    `Added to the plan as action ${id}. It has NOT been executed and has no result yet.${consent} ` +
    `A later call can refer to its result: {"$ref":"${id}","path":"…"}.`
  );
}

/** Maximum characters of one result, and of all results together. */
/** The first line of the report of a plan to the model. */
export const PLAN_REPORT = '[What was done. The user does not see this.]';

const MAX_RESULT = 4_000;
const MAX_RESULTS = 24_000;

/** The data for a report. */
interface ReportSource {
  readonly values: JsonObject;
  readonly plan?: string | undefined;
  readonly results?: string | undefined;
  readonly error?: string | undefined;
  /** Whether the run answered its requests itself, because it is unattended; default: a person did. */
  readonly unattended?: boolean;
}

/**
 * Returns the report that the model reads before it answers: actions that were left out, failures,
 * and the result of each action. Null if nothing was planned or done; the conversation is enough
 * then.
 */
export function reportText(source: ReportSource): string | null {
  const done = doneText(source);
  if (done === null) return null;
  return [
    done,
    'Answer the user in one to three sentences: what was done, with names, times, and ids; what was not ' +
      'done, and why; and what could be tried instead. Write lists as bullets. Claim nothing that is not above.',
  ].join('\n');
}

/** Returns the report without the request for an answer; null if nothing was planned or done. */
export function doneText({
  values,
  plan: field,
  results,
  error,
  ...how
}: ReportSource): string | null {
  const plan = field === undefined ? null : planIn(values, field);
  const fault = fieldOf(values, error);
  const parts = [
    ...(isObject(fault) ? [`Planning failed: ${textOf(fault['message'])}`] : []),
    ...(plan?.dropped
      ? [`Not done, because ${droppedText(how)}: ${plan.dropped.join(', ')}.`]
      : []),
    ...(plan?.unanswered
      ? [`Not done, because the question expired: ${plan.unanswered.join(', ')}.`]
      : []),
    ...resultLines(plan, fieldOf(values, results)),
    ...openLines(plan, fieldOf(values, results)),
  ];
  if (parts.length === 0) return null;
  return [PLAN_REPORT, ...parts].join('\n');
}

function droppedText({ unattended = false }: Pick<ReportSource, 'unattended'>): string {
  return unattended ? 'they need a decision, and this run is unattended' : 'a person left them out';
}

function fieldOf(values: JsonObject, field: string | undefined): Json | undefined {
  return field !== undefined && Object.hasOwn(values, field) ? values[field] : undefined;
}

function resultLines(plan: Plan | null, results: Json | undefined): readonly string[] {
  const ended = isObject(results) ? Object.entries(results) : [];
  const tools = new Map(plan?.actions.map(({ id, tool }) => [id, tool]));
  let left = MAX_RESULTS;
  const reads = (plan?.done ?? []).map(({ id, tool, result }) => line(id, tool, result));
  const lines = [...reads, ...ended.map(([id, result]) => line(id, tools.get(id) ?? '', result))];
  return lines.map((text) => {
    const room = Math.max(80, Math.min(MAX_RESULT, left));
    left -= Math.min(text.length, room);
    if (text.length <= room) return text;
    return `${headOf(text, room)}… [cut: ${text.length} characters]`;
  });
}

/**
 * Returns the lines for actions that never ran although they were not left out, such as those of
 * an unconfirmed plan.
 */
function openLines(plan: Plan | null, results: Json | undefined): readonly string[] {
  const ended = isObject(results) ? results : {};
  const open = (plan?.actions ?? []).filter(({ id }) => !Object.hasOwn(ended, id));
  return open.length === 0
    ? []
    : [`Not done: ${open.map(({ id, tool }) => `${id} ${tool}`).join(', ')}.`];
}

function line(id: string, tool: string, result: unknown): string {
  const { ok, value, error } = isObject(result) ? result : {};
  const what = ok === true ? `done: ${textOf(value)}` : `failed: ${textOf(error)}`;
  return `- ${id} ${tool} ${what}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
