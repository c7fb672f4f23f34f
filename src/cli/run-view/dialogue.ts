import { attachedBytes } from '../../storage/owned-text.js';
import { givenResult } from '../../core/state/decisions.js';
import type { RecordedDecision } from '../../core/state/state.js';
import type { Undoable } from '../../core/state/undo.js';
import { failureOf } from '../../core/transcript/call-result.js';
import type { CallPair } from '../../core/transcript/transcript.js';
import type {
  AssistantMessage,
  Message,
  ToolCall,
  UserMessage,
} from '../../core/transcript/messages.js';
import { formatBytes, visible, actorText } from '../../core/state/summaries.js';
import { NO_MODEL } from '../../core/definition/definition.js';
import { itemsText } from '../../core/graph/items.js';
import type { ActionProgress } from '../../core/run/details.js';
import { printable } from '../../core/text/text.js';
import type { PlacedNodeStep } from '../../history/placed-node-steps.js';
import type { TurnRecord } from '../../history/run-transcript.js';
import {
  type Palette,
  formatCount,
  formatDateTime,
  formatTime,
  formatUsage,
} from '../format/format.js';
import { actionLine, nodeLine } from './step-lines.js';

interface DialogueOptions {
  /** Truncate nothing. */
  readonly full: boolean;
  readonly paint: Palette;
  /** The steps of a run in its graph, in order; absent for a run of an agent. */
  readonly nodes?: readonly PlacedNodeStep[];
  /** The decisions about the calls, oldest first. */
  readonly decisions?: readonly RecordedDecision[] | undefined;
  /** The calls whose undo was requested. */
  readonly undos?: readonly RequestedUndo[];
  /** Where the newest segment begins; absent if the run has only one segment. */
  readonly segment?: SegmentMark | undefined;
}

/** A call whose undo was requested, how far that is, and who requested it. */
export interface RequestedUndo extends Undoable {
  readonly state: NonNullable<Undoable['state']>;
  readonly by?: string;
  readonly door?: string;
}

export interface SegmentMark {
  /** Counted from 1. */
  readonly number: number;
  /** The number of its first message. */
  readonly from: number;
}

/** The maximum lengths of a call's arguments and of a result, in UTF-16 units. */
const ARGUMENTS = 400;
const RESULT = 1_500;
const RESULT_LINES = 20;
/** Indents the texts of models and tools, so that they cannot be mistaken for our own lines. */
const INDENT = '  ';

/** Formats messages for reading: sender, turn, step, time, and text, and the nodes between them. */
export function dialogue(
  messages: readonly Message[],
  options: DialogueOptions,
): readonly string[] {
  const names = new Map(
    messages.flatMap((message) => callsOf(message).map(({ id, name }) => [id, name] as const)),
  );
  const { segment, paint, nodes = [], decisions } = options;
  const begins = messages.find(
    ({ n }, at) => segment !== undefined && n >= segment.from && (at > 0 || n === segment.from),
  );
  let passed = -1;
  /** Returns the steps between the last message and the one with this number. */
  const nodesBefore = (n: number): readonly string[] => {
    const between = nodes.filter(({ before }) => before > passed && before <= n);
    passed = n;
    const lines = between.flatMap((step) => nodeStepLines(step, paint));
    return lines.length === 0 ? [] : [...lines, ''];
  };
  return [
    ...messages.flatMap((message) => [
      ...nodesBefore(message.n),
      ...(message === begins ? [paint.dim(`--- segment ${segment?.number} begins ---`), ''] : []),
      paint.bold(header(message, { names, decisions })),
      ...indented(body(message, options)),
      '',
    ]),
    ...nodesBefore(Infinity),
  ];
}

function indented(lines: readonly string[]): readonly string[] {
  return lines.map((line) => (line === '' ? '' : `${INDENT}${line}`));
}

/** Returns the lines for a step of a run in its graph. */
function nodeStepLines(step: PlacedNodeStep, paint: Palette): readonly string[] {
  const time = paint.dim(formatTime(step.at));
  switch (step.type) {
    case 'node-begun': {
      const visit = step.visit === 1 ? '' : ` · visit ${step.visit}`;
      return [`${paint.bold(`node ${visible(step.node)}`)} · begins${visit} · ${time}`];
    }
    case 'node-ended':
      return [`${nodeLine(step, paint)} · ${time}`];
    case 'items-ended': {
      const { node, done, failed, total } = step;
      const items = itemsText({ ended: done, failed, total });
      return [
        `${paint.bold(`node ${visible(node)}`)} · ${failed > 0 ? paint.red(items) : items} · ${time}`,
      ];
    }
    case 'node-replied':
      return [
        `${paint.bold(`node ${visible(step.node)}`)} · reply of model ${visible(step.model)} · ${time}`,
        ...indented(printable(step.text).split('\n')),
      ];
    case 'turn-answered':
      return [
        `${paint.bold(`graph · answer of turn ${step.turn}`)} · ${time}`,
        ...indented(printable(step.text).split('\n')),
      ];
    case 'action-changed': {
      const line = actionLine(step.action, paint);
      return line === null ? [] : [`${line} · ${time}`];
    }
  }
}

/** Formats calls, each with its result, for reading. */
export function pairLines(pairs: readonly CallPair[], options: DialogueOptions): readonly string[] {
  return pairs.flatMap(({ call, result, n, turn, step, at }) => [
    options.paint.bold([`#${n}`, `turn ${turn}`, ...stepOf(step), formatTime(at)].join(' · ')),
    ...callLines(call, options).map((line) => `${INDENT}${line}`),
    ...resultLines(result, options).map((line) => `${INDENT}${line}`),
    '',
  ]);
}

/** An action of a plan that was executed, with the time (Unix, in ms) at which it ended. */
export interface EndedAction extends ActionProgress {
  readonly at: number;
}

/** Returns the actions of plans that were executed, in the order in which they ended. */
export function endedActions(steps: readonly PlacedNodeStep[]): readonly EndedAction[] {
  return steps.flatMap((step) => {
    if (step.type !== 'action-changed') return [];
    const { action, at } = step;
    return action.state === 'done' || action.state === 'failed' ? [{ ...action, at }] : [];
  });
}

/** Formats executed actions of plans for reading. */
export function endedActionLines(
  actions: readonly EndedAction[],
  paint: Palette,
): readonly string[] {
  const lines = actions.flatMap((action) => {
    const line = actionLine(action, paint);
    return line === null ? [] : [`${line} · ${paint.dim(formatTime(action.at))}`];
  });
  return lines.length === 0 ? [] : [...lines, ''];
}

/** Says that a person has given the result of a call in place of its tool; empty if no one has. */
function givenBy(
  call: string,
  { decisions }: Pick<DialogueOptions, 'decisions'>,
): readonly string[] {
  const given = givenResult(decisions, call);
  return given === undefined ? [] : [`given by ${actorText(given)}`];
}

function resultLines(result: CallPair['result'], options: DialogueOptions): readonly string[] {
  if (result === null) return ['no result'];
  const edited = result.edited === undefined ? [] : [`edited: ${visible(result.edited)}`];
  const failed = failureOf(result) === null ? [] : [options.paint.red('failed')];
  const given = givenBy(result.callId, options);
  const head = [`#${result.n} result`, ...edited, ...given, ...failed, formatTime(result.at)].join(
    ' · ',
  );
  return [head, ...body(result, options)];
}

/** Returns the step; nothing for a message of a graph that no step of a model has made. */
function stepOf(step: number): readonly string[] {
  return step > 0 ? [`step ${step}`] : [];
}

/** What the head of a message says beside the message. */
interface HeadFacts extends Pick<DialogueOptions, 'decisions'> {
  /** The names of the tools, by the ids of their calls. */
  readonly names: ReadonlyMap<string, string>;
}

function header(message: Message, facts: HeadFacts): string {
  const { n, at, turn, step } = message;
  const parts = [`#${n} ${speaker(message, facts)}`, `turn ${turn}`];
  if (message.role !== 'user') parts.push(...stepOf(step));
  return [...parts, formatTime(at)].join(' · ');
}

function speaker(message: Message, facts: HeadFacts): string {
  switch (message.role) {
    case 'user':
      return userName(message);
    case 'assistant':
      return assistantName(message);
    case 'tool': {
      const name = facts.names.get(message.callId);
      const given = givenBy(message.callId, facts).map((text) => ` · ${text}`);
      const shown =
        name === undefined ? `result of ${message.callId}` : `${name} (${message.callId})`;
      const failed = failureOf(message) === null ? '' : ' · failed';
      const edited = message.edited === undefined ? '' : ` · edited: ${visible(message.edited)}`;
      return `${visible(shown)}${edited}${given.join('')}${failed}${message.refused === undefined ? '' : REFUSED[message.refused]}`;
    }
  }
}

function assistantName({ side, origin, refuses, refused, node, model }: AssistantMessage): string {
  if (refused !== undefined) return 'model · withheld, not in the prompt';
  const writer = model === undefined ? 'model' : `model · fallback ${visible(model)}`;
  if (side) return `${writer} · refused answer`;
  if (refuses !== undefined) {
    return `graph · refused #${refuses.from} to #${refuses.to}, which the model does not see`;
  }
  if (node !== undefined) return visible(`node ${node}`);
  return origin === undefined ? writer : origin;
}

/** Marks a message that a provider has refused. */
const REFUSED = {
  message: ' · refused by the provider, not in the prompt',
  attachments: ' · attachments refused by the provider, not in the prompt',
} as const;

function userName(message: UserMessage): string {
  const { refused } = message;
  return `${senderName(message)}${refused === undefined ? '' : REFUSED[refused]}`;
}

function senderName(message: UserMessage): string {
  const { document, origin, pinned, compacts, side, by, node } = message;
  if (compacts !== undefined) {
    return `perdure · summary, replaces #${compacts.from} to #${compacts.to} for the model`;
  }
  if (side) return 'perdure · about the refused answer';
  if (origin === 'perdure') return 'perdure';
  if (origin === 'graph') return visible(`node ${node ?? ''} · message to the model`);
  if (origin === 'retrieved') {
    return visible(`retrieved ${document?.source ?? document?.id ?? 'document'}`);
  }
  const name = by === undefined ? 'user' : `user (${actorText(message)})`;
  return pinned ? `${name} · pinned` : name;
}

function body(message: Message, options: DialogueOptions): readonly string[] {
  const lines = message.text === '' ? [] : printable(message.text).split('\n');
  if (message.role === 'tool' && !options.full) {
    return cut(message.text, { characters: RESULT, lines: RESULT_LINES }, message.blob?.bytes);
  }
  return [
    ...lines,
    ...attachedLines(message),
    ...callsOf(message).flatMap((call) => callLines(call, options)),
  ];
}

function attachedLines(message: Message): readonly string[] {
  const { attachments = [] } = message.role === 'user' ? message : {};
  return attachments.map((attached) => {
    if ('url' in attached) return visible(`+ ${attached.type} ${attached.url}`);
    const { type, name = '', mediaType, blob } = attached;
    const size = formatBytes(attachedBytes(blob));
    return visible(`+ ${type} ${name} (${mediaType}, ${size})`.replace('  ', ' '));
  });
}

function callsOf(message: Message): readonly ToolCall[] {
  return message.role === 'assistant' ? (message.calls ?? []) : [];
}

function callLines(call: ToolCall, options: DialogueOptions): readonly string[] {
  const { full, paint, decisions = [], undos = [] } = options;
  const { id, name, arguments: json, blob, problem } = call;
  const args = full
    ? printable(json).split('\n')
    : cut(json, { characters: ARGUMENTS, lines: RESULT_LINES }, blob?.bytes);
  const [first = '', ...rest] = args;
  const problemLines =
    problem === undefined ? [] : [paint.red(`not executed: ${visible(problem.type)}`)];
  const decided = decisions.flatMap((one) => (one.call === id ? [decidedText(one)] : []));
  const undone = undos.flatMap((one) => (one.call === id ? [undoText(one)] : []));
  const head = `→ ${visible(name)} ${first} ${paint.dim(visible(id))}`;
  const line = [head, ...decided, ...undone].join(' · ');
  return [line, ...rest, ...problemLines];
}

/** Returns what a person decided about a call, or that the time to decide was over. */
function decidedText({ as = 'decided', ...who }: RecordedDecision): string {
  return as === 'expired' ? as : `${visible(as)} by ${actorText(who)}`;
}

/** Returns how far the undo of a call is. */
function undoText({ state, message = '', ...who }: RequestedUndo): string {
  const by = `by ${actorText(who)}`;
  if (state === 'undone') return `undone ${by}`;
  if (state === 'undoing') return `being undone ${by}`;
  if (state === 'not_undone') return visible(`not undone: requested ${by}, but ${message}`);
  return `undo ${by} ${state}${message === '' ? '' : `: ${visible(message)}`}`;
}

/**
 * Truncates a text and appends the size of the rest. `bytes` is the size of the whole text if it is
 * in the blob store.
 */
function cut(
  text: string,
  limit: { readonly characters: number; readonly lines: number },
  bytes?: number,
): readonly string[] {
  const lines = printable(text.slice(0, limit.characters)).split('\n').slice(0, limit.lines);
  const left = (bytes ?? Buffer.byteLength(text)) - Buffer.byteLength(lines.join('\n'));
  return left <= 0 ? lines : [...lines, `… ${formatBytes(left)} omitted; show all with --full`];
}

/** How much of a definition's hash is shown; `--json` has all of it. */
const HASH_CHARACTERS = 12;

/** Formats the turns of a run that have ended, for reading. */
export function turnLines(turns: readonly TurnRecord[], paint: Palette): readonly string[] {
  return turns.flatMap(({ turn, agent, definition, model, settings, outcome, reports, at }) => {
    const { status, reason, usage, steps } = outcome;
    const end = status === reason ? status : `${status} (${reason})`;
    return [
      paint.bold(`turn ${turn} · ${end} · ${formatDateTime(at)}`),
      `  ${visible(agent)} ${definition.slice(0, HASH_CHARACTERS)}${model === NO_MODEL ? '' : `, model ${visible(model)}`}`,
      ...(Object.keys(settings).length === 0 ? [] : [`  ${printable(JSON.stringify(settings))}`]),
      `  ${formatCount(steps, 'step')} · ${formatUsage(usage)}`,
      ...reports.map(({ type, attempt, message }) =>
        visible(`  attempt ${attempt} failed: ${type}: ${message}`),
      ),
      '',
    ];
  });
}
