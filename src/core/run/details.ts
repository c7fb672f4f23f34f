import { type RunGraph, describeGraph, runGraph } from '../graph/describe.js';
import { actionOf, failedBefore } from '../plan/plan-batch.js';
import { type PlannedAction, needsOf, planIn } from '../plan/plan.js';
import type { RunState } from '../state/state.js';
import { type RunStatus, statusName } from '../state/status.js';
import { callSummary, formatBytes, visible } from '../state/summaries.js';
import { currentNode, stepOfLimit } from '../state/turn-definition.js';
import { getOpenBatch } from '../state/turn.js';
import { findWork } from '../state/work.js';
import { type JsonObject, canonicalJson, errorIn, isObject, textField } from '../text/json.js';
import { withoutTail } from '../text/text.js';
import { failureOf } from '../transcript/call-result.js';
import type { ToolMessage } from '../transcript/messages.js';

/** The progress of one action of a plan. */
export interface ActionProgress {
  readonly id: string;
  readonly tool: string;
  /** For people. */
  readonly shown: string;
  readonly state: 'planned' | 'waiting' | 'running' | 'asking' | 'done' | 'failed';
  /** Why it failed; absent otherwise. */
  readonly message?: string;
}

/** The progress of a run's plan. */
export interface PlanProgress {
  readonly actions: readonly ActionProgress[];
  /** Actions that have succeeded. */
  readonly done: number;
  readonly failed: number;
}

/** The answer to the query `graph`: the run's graph and the progress of its plan. */
export interface GraphView extends RunGraph {
  /** Null without a plan. */
  readonly plan: PlanProgress | null;
}

/**
 * Returns the graph of a run with its plan; null if its agent has none, or if it is not loaded yet.
 */
export function graphView(state: RunState): GraphView | null {
  const graph = runGraph(state);
  return graph && { ...graph, plan: planProgress(state) };
}

/** Returns the progress of a run's plan; null if the run has none. */
export function planProgress(state: RunState): PlanProgress | null {
  const graph = runGraph(state);
  const values = graph?.state.values ?? {};
  const plans = (graph?.definition.nodes ?? []).flatMap((node) =>
    node.kind === 'plan' ? [planIn(values, node.save)] : [],
  );
  const plan = plans.find(({ actions }) => actions.length > 0);
  if (plan === undefined) return null;
  const ended = new Map(
    (graph?.definition.nodes ?? []).flatMap((node) => {
      const saved = node.kind === 'execute' ? values[node.save] : undefined;
      return isObject(saved) ? Object.entries(saved) : [];
    }),
  );
  const actions = plan.actions.map((action): ActionProgress => {
    const { id, tool, shown = tool } = action;
    const result = ended.get(id);
    if (!isObject(result)) return { id, tool, shown, ...inBatch(state, action) };
    if (result['ok'] === true) return { id, tool, shown, state: 'done' };
    const error = isObject(result['error']) ? result['error'] : {};
    return { id, tool, shown, ...failedAction(action, error) };
  });
  const count = (name: ActionProgress['state']): number =>
    actions.filter((action) => action.state === name).length;
  return { actions, done: count('done'), failed: count('failed') };
}

/**
 * Returns what the run calls for an action of its plan, for people; null if that is what the plan says,
 * as it is unless references of the action were replaced by results.
 */
export function calledFor(state: RunState, id: string): string | null {
  const node = currentNode(state);
  if (node?.kind !== 'execute') return null;
  const { actions } = planIn(runGraph(state)?.state.values ?? {}, node.plan);
  const planned = actions.find((action) => action.id === id);
  const call = getOpenBatch(state)?.calls.find((one) => actionOf(one) === id);
  if (planned === undefined || call === undefined || call.after !== undefined) return null;
  return call.arguments === canonicalJson(planned.arguments) ? null : callSummary(call);
}

type ActionState = Pick<ActionProgress, 'state' | 'message'>;

function failedAction(action: PlannedAction, error: JsonObject): ActionState {
  const [type, message] = [textField(error, 'type'), textField(error, 'message')];
  const isSkippedBy = (need: string): boolean => message === failedBefore(need);
  // A text that only begins like this may be the tool's own.
  const isSkip =
    type === 'not_executed' || (type === 'invalid_arguments' && needsOf(action).some(isSkippedBy));
  const why =
    isSkip && isSkipped({ message }) ? message : message === '' ? type : `${type}: ${message}`;
  return { state: 'failed', message: why };
}

/** What the message of a call begins with that was not executed, although nothing is wrong with it. */
export const SKIPPED = 'not executed: ';

/**
 * Whether an action of a plan was skipped, such as after the failure of one that it needs. The message of any
 * other action begins with the type of its error.
 */
export function isSkipped({ message = '' }: Pick<ActionProgress, 'message'>): boolean {
  return message.startsWith(SKIPPED);
}

/** Returns the state of an action according to the open batch. */
function inBatch(state: RunState, action: PlannedAction): ActionState {
  const { id } = action;
  const batch = getOpenBatch(state);
  const index = batch?.calls.findIndex((call) => call.node && actionOf(call) === id) ?? -1;
  const call = batch?.calls[index];
  if (call === undefined) return { state: 'planned' };
  const result = batch?.results[index];
  if (result)
    return result.ok ? { state: 'done' } : failedAction(action, { ...errorIn(result.text) });
  const work = findWork(state, call.id);
  if (work === undefined) return { state: 'waiting' };
  return { state: work.request === undefined ? 'running' : 'asking' };
}

/** Maximum ids that a line lists for each state. */
const MAX_NAMED = 5;

/** Returns a line such as `4 of 7 done, 1 failed; running a5, a6`; null without a plan. */
function planLine(state: RunState): string | null {
  const progress = planProgress(state);
  if (progress === null) return null;
  const { actions, done, failed } = progress;
  const named = (which: ActionProgress['state'], words: string): readonly string[] => {
    const ids = actions.filter((action) => action.state === which).map(({ id }) => visible(id));
    if (ids.length === 0) return [];
    const more = ids.length > MAX_NAMED ? `, and ${ids.length - MAX_NAMED} more` : '';
    return [`${words} ${ids.slice(0, MAX_NAMED).join(', ')}${more}`];
  };
  const counts = `${done} of ${actions.length} done${failed === 0 ? '' : `, ${failed} failed`}`;
  return [counts, ...named('running', 'running'), ...named('asking', 'waiting for approval:')].join(
    '; ',
  );
}

/** Maximum bytes of a summary as JSON. Temporal accepts 400. */
const SUMMARY_BYTES = 380;

/**
 * Returns Markdown that shows exactly this text: nothing in it is a link, an image, HTML, code,
 * emphasis, or the end of a table cell. For places that always render Markdown.
 */
export function escapeMarkdown(text: string): string {
  return text
    .trimStart()
    .replaceAll(/[|<>[\]()`\\*_~#!&]/g, '\\$&')
    .replace(/^(\d*)(?=[-+=.)])/, '$1\\');
}

/**
 * Returns a line that reads almost the same as plain text and as Markdown: only links, images,
 * HTML, code, headings, lists, and quotations are escaped. For places that some pages render as
 * Markdown and others as plain text.
 */
export function inertMarkdown(line: string): string {
  return (
    line
      .trimStart()
      // A backslash before an escaped character would be its escape, so it is escaped as well.
      .replaceAll(/(?<!\\)(\\*)(`|<(?=\S)|~(?=~)|\](?=[([:])|&(?=#?\w+;))/g, '$1$1\\$2')
      .replace(/^(\d*)(?=[-+.)](?:\s|$))|^(?=[#>=*_-]+(?:\s|$)|>)/, '$1\\')
  );
}

/**
 * Returns the summary of a workflow, which Temporal's UI renders as Markdown, cut to its maximum
 * size.
 */
export function workflowSummary(text: string): string {
  return cutSummary(escapeMarkdown(text));
}

/**
 * Returns the summary of an activity or a timer, which Temporal's UI shows as text, cut to its
 * maximum size.
 */
export function eventSummary(text: string): string {
  return cutSummary(inertMarkdown(text));
}

/** Cuts a summary: a longer one would fail the workflow task again and again. */
function cutSummary(text: string): string {
  let bytes = 0;
  let short = '';
  for (const character of text) {
    bytes += bytesIn(character);
    // A trailing backslash would escape what follows.
    if (bytes > SUMMARY_BYTES) return `${withoutTail(short, /\\/)}…`;
    short += character;
  }
  return text;
}

/** Bytes of a character in JSON. */
function bytesIn(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return character === '"' || character === '\\' ? 2 : 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** Maximum calls in the table. */
const MAX_CALLS = 8;
/** Space after a column: Temporal's UI sets the columns of a table close together. */
const GAP = '\u2003';

/**
 * Returns Markdown for Temporal's Current Details: status, usage, last calls. Always under 20,000
 * bytes.
 */
export function currentDetails(state: RunState, status: RunStatus): string {
  const { usage } = state.turn.spent;
  const cost = usage.costUsd === null ? 'unknown' : `$${usage.costUsd.toFixed(4)}`;
  const rows = [
    [
      'Status',
      status.reason === null ? statusName(status) : `${statusName(status)} (${status.reason})`,
    ],
    ['Agent', `${status.agent} · ${state.config.definition.model}`],
    ['Turn, step', `${status.turn}, ${stepOfLimit(state, status.step)}`],
    ['Tool calls', `${state.turn.spent.toolCalls}`],
    ['Tokens', `${usage.inputTokens} in (${usage.cachedTokens} cached), ${usage.outputTokens} out`],
    ['Cost', cost],
    ...graphRows(state),
    ...(status.doing === null ? [] : [['Doing', status.doing]]),
    ...(status.message === null ? [] : [['To do', status.message]]),
  ];
  const head = [
    '| | |',
    '|---|---|',
    ...rows.map(([name, value]) => `| **${name}**${GAP} | ${cell(value)} |`),
  ];
  return [...head, '', ...lastCalls(state)].join('\n');
}

/**
 * Returns the rows about the run's position in its graph, without times, because the text may be
 * read much later.
 */
function graphRows(state: RunState): readonly (readonly [string, string])[] {
  const graph = runGraph(state);
  if (graph === null) return [];
  const plan = planLine(state);
  const lines = describeGraph(graph, null);
  return [
    ...(lines.length === 0 ? [] : [['Graph', lines.join('; ')] as const]),
    ...(plan === null ? [] : [['Plan', plan] as const]),
  ];
}

function lastCalls(state: RunState): readonly string[] {
  const { messages } = state.transcript;
  const results = new Map(
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, message] as const] : [],
    ),
  );
  const calls = messages
    .slice(-4 * MAX_CALLS)
    .flatMap((message) => (message.role === 'assistant' ? (message.calls ?? []) : []))
    .slice(-MAX_CALLS);
  if (calls.length === 0) return [];
  const rows = calls.map((call) => {
    const result = results.get(call.id);
    return `| ${cell(call.id)}${GAP} | ${cell(callSummary(call))}${GAP} | ${result ? resultSummary(result) : '…'} |`;
  });
  return ['| Call | | Result |', '|---|---|---|', ...rows];
}

function resultSummary(result: ToolMessage): string {
  return failureOf(result)?.type ?? formatBytes(result.text.length);
}

/**
 * Returns the text as a table cell, which can neither break out of the table nor contain a link or
 * an image.
 */
function cell(text: string | undefined): string {
  return escapeMarkdown(visible(text ?? ''));
}
