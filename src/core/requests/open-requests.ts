import { findTool } from '../calls/batch.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import { briefPlan, planTitle, shownActions } from '../plan/confirm-plan.js';
import type { RunState } from '../state/state.js';
import { formatBytes } from '../state/summaries.js';
import { nodeOfCall } from '../state/turn-definition.js';
import { type AskingWork, type Work, callOfWork, isUndo } from '../state/work.js';
import { type Json, canonicalJson, isObject, parseJson, sha256Hex } from '../text/json.js';
import { escapeArguments, escapeJson, headOf, printable } from '../text/text.js';
import type { ParsedArguments, ToolCall } from '../transcript/messages.js';
import {
  type DecisionKind,
  type LimitReached,
  OFFERED,
  type Request,
  type RequestKind,
} from '../transcript/request.js';
import { fixFor, limitAmount, limitOption } from './commands.js';

/** Returns the public form of a request. `run`: the run's workflow id, for the commands. */
export function toRequest(state: RunState, work: AskingWork, run: string): Request {
  const { request } = work;
  const call = callOfWork(state, work.name);
  const tool = call && findTool(state, call.name);
  const { id, kind, why, raisedAt, expiresAt = null, deciders = [], limit, definition } = request;
  const undo = isUndo(work);
  const about = { run: state.firstRunId ?? '', kind, call, tool, limit, definition, undo };
  const digest = requestDigest(about);
  const decisions = offered(kind, work);
  const given = call && call.blob === undefined ? { arguments: call.arguments } : {};
  const limited = limit === undefined ? {} : { limit };
  const form = definition === undefined ? {} : { definition };
  return {
    id,
    kind,
    ...(call && { call: call.id, tool: call.name, ...(tool && { effect: tool.effect }) }),
    ...(call?.blob && { argumentsBlob: call.blob }),
    ...given,
    ...(call?.parsed && parsedOf(call.parsed)),
    digest,
    shown: shownRequest(work, call, tool),
    ...(call?.summary !== undefined && { summary: printedLine(call.summary) }),
    why,
    requester: state.turn.by?.[0] ?? null,
    raisedAt,
    expiresAt,
    onExpiry: kind === 'limit' ? 'stop' : 'deny',
    decisions,
    deciders,
    fix: fixFor(run, { id, kind, digest, ...given, ...limited, ...form }, decisions),
    ...((kind === 'question' || kind === 'plan') && call && questionOf(call)),
    ...(kind === 'plan' && call && effectsOf(state, call)),
    ...(call?.safety && { checks: call.safety }),
    ...limited,
    ...(kind === 'outcome_unknown' && { idempotencyKey: work.key ?? '' }),
    ...form,
    ...(work.proposal && { checking: true }),
  };
}

/** Returns the effect of each tool of a plan. */
function effectsOf(state: RunState, call: ToolCall): Pick<Request, 'effects'> {
  const effects = (shownActions(call.arguments) ?? []).flatMap(({ tool }) => {
    const found = findTool(state, tool);
    return found === undefined ? [] : [[tool, found.effect] as const];
  });
  return { effects: Object.fromEntries(effects) };
}

function parsedOf({
  arguments: parsed,
  blob,
}: ParsedArguments): Pick<Request, 'parsed' | 'parsedBlob'> {
  return blob === undefined ? { parsed } : { parsedBlob: blob };
}

function offered(kind: Request['kind'], { name }: Work): readonly DecisionKind[] {
  // An undo is about a call that has been made, so its arguments cannot change.
  return isUndo({ name }) ? ['approve', 'deny'] : OFFERED[kind];
}

function shownRequest(
  { name, request }: AskingWork,
  call: ToolCall | undefined,
  tool: ReturnType<typeof findTool>,
): string {
  const { limit } = request;
  if (limit !== undefined) {
    const [used, most] = [limit.used, limit.limit].map((amount) =>
      amount === null ? null : limitAmount(limit.name, amount),
    );
    return `limit ${limitOption(limit.name)}: ${used}${most ? ` of ${most}` : ''} used`;
  }
  if (call === undefined) return '';
  // The engine generated the text from the plan's actions.
  if (request.kind === 'plan') return questionOf(call).question ?? '';
  if (request.kind === 'question') return shownQuestion(call);
  return isUndo({ name }) ? `undo ${shownCall(call, tool)}` : shownCall(call, tool);
}

/** Returns a question: who asks by code, then the words of the model or the graph, quoted. */
function shownQuestion(call: ToolCall): string {
  const { question = '', options = [] } = questionOf(call);
  return [
    askerOf(call),
    ...printable(question)
      .split('\n')
      .map((line) => `> ${line}`),
    ...(options.length === 0
      ? []
      : [`answers: ${escapeJson(options.map((one) => JSON.stringify(one)).join(', '))}`]),
  ].join('\n');
}

/** Returns who asks a question: the model, or a node of the graph. */
export function askerOf(call: Pick<ToolCall, 'name'>): string {
  const node = nodeOfCall(call);
  return node === null ? 'the model asks' : `the graph asks at node ${printedLine(node)}`;
}

/** Returns a request as one line: what it is about, or who asks what. */
export function headline({
  kind,
  shown,
  summary,
  question = '',
  arguments: given = '',
}: Pick<Request, 'kind' | 'shown' | 'summary' | 'question' | 'arguments'>): string {
  const actions = kind === 'plan' ? shownActions(given) : null;
  if (actions !== null) return planTitle(actions);
  const [first = ''] = shown.split('\n');
  const more = kind === 'question' ? printedLine(question) : summary;
  return more === undefined ? first : `${first}: ${more}`;
}

function questionOf(call: ToolCall): Pick<Request, 'question' | 'options'> {
  const value = parseJson(call.arguments);
  const { question, options } = isObject(value) ? value : {};
  const choices = Array.isArray(options) ? options.filter((one) => typeof one === 'string') : [];
  return {
    question: typeof question === 'string' ? question : '',
    ...(choices.length > 0 && { options: choices }),
  };
}

/** Maximum characters of all arguments together. The rest is only in the request. */
const MAX_CHARACTERS = 8_000;

/**
 * Returns a call as people see it before they decide: the tool, its effect, its target, the
 * author's description, and every argument as it was written and, if that differs, as the tool gets
 * it. It is generated from the recorded call and contains no model text. Hidden characters are escaped.
 */
function shownCall(call: ToolCall, tool: ToolDefinition | undefined): string {
  return [titleOf(call, tool), ...describeLine(call), ...argumentTexts(call)].join('\n');
}

function titleOf({ name }: ToolCall, tool: ToolDefinition | undefined): string {
  const words = [name];
  if (tool !== undefined) words.push(EFFECT_TEXTS[tool.effect]);
  if (tool?.mcp) words.push(`MCP server ${tool.mcp.server}`);
  if (tool?.calls) words.push(`agent ${tool.calls.agent}`);
  return printedLine(words.join(' · '));
}

function printedLine(text: string): string {
  return printable(text).replaceAll(/[\n\t]/g, ' ');
}

/** What each effect of a tool means to a person who decides about a call. */
export const EFFECT_TEXTS = {
  read: 'read: changes nothing',
  keyed: 'keyed: has a side effect, safe to retry',
  once: 'once: has a side effect, never retried',
} as const satisfies Readonly<Record<NonNullable<Request['effect']>, string>>;

function describeLine({ summary }: ToolCall): readonly string[] {
  return summary === undefined ? [] : [printedLine(summary)];
}

/**
 * Returns a text of one line for each argument. If the tool gets something else than was written, the line shows
 * both: `euros: "99999" → 99999`.
 */
export function argumentTexts(
  call: Pick<ToolCall, 'arguments' | 'blob' | 'parsed'>,
): readonly string[] {
  const written = formOf(call);
  if (call.parsed === undefined)
    return linesOf(written, ([, argument]) => escapeArguments(argument));
  const parsed = formOf(call.parsed);
  if (written.entries === null || parsed.entries === null) {
    const own = ([, argument]: Entry): string => escapeArguments(argument);
    return [...linesOf(written, own), 'the tool gets:', ...linesOf(parsed, own)];
  }
  const before = new Map(written.entries);
  const after = new Map(parsed.entries);
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const entries = names.map((name): Entry => [name, '']);
  return linesOf({ entries }, ([name]) => {
    const [given, got] = [before.get(name), after.get(name)];
    if (given === got) return escapeArguments(given ?? '');
    return `${given === undefined ? '(not given)' : escapeArguments(given)} → ${got === undefined ? '(left out)' : escapeArguments(got)}`;
  });
}

/** The name of an argument and its value as JSON. */
type Entry = readonly [string, string];

/** Arguments by name, or the one line that stands for them. */
type Form =
  | { readonly entries: readonly Entry[] }
  | { readonly entries: null; readonly line: string };

function formOf({ arguments: json, blob }: Pick<ToolCall, 'arguments' | 'blob'>): Form {
  if (blob !== undefined) {
    const line = `[${formatBytes(blob.bytes)} of arguments, stored as blob ${blob.sha256}]`;
    return { entries: null, line };
  }
  const value = parseJson(json);
  if (!isObject(value)) return { entries: null, line: escapeArguments(json) };
  return { entries: Object.entries(value).map(([name, one]) => [name, JSON.stringify(one)]) };
}

function linesOf(form: Form, shownValue: (entry: Entry) => string): readonly string[] {
  if (form.entries === null) return [form.line];
  let left = MAX_CHARACTERS;
  const lines = form.entries.map((entry) => {
    const line = `${escapeArguments(JSON.stringify(entry[0])).slice(1, -1)}: ${shownValue(entry)}`;
    const shown = headOf(line, Math.max(0, left));
    left -= line.length;
    return shown.length === line.length
      ? line
      : `${shown}… [truncated: ${line.length} characters; see \`arguments\` of the request]`;
  });
  return lines.length === 0 ? ['(no arguments)'] : lines;
}

/** The subject of a decision, which its digest covers. */
interface Subject {
  /** The run's first execution run id. */
  readonly run: string;
  readonly kind: RequestKind;
  readonly call?: ToolCall | undefined;
  /** The run's pinned definition of the tool. */
  readonly tool?: ToolDefinition | undefined;
  readonly limit?: LimitReached | undefined;
  /** For `tool_changed`: hash of the tool's current form. */
  readonly definition?: string | undefined;
  /** The call has been made and would be undone. */
  readonly undo?: boolean;
}

/**
 * Returns the digest that a decision must specify: SHA-256 (hex) of canonical JSON. It covers the
 * run, the call, the tool's whole pinned definition, and the arguments as written and as the tool
 * gets them. A decision therefore applies to no other call and no other arguments.
 */
function requestDigest(about: Subject): string {
  const { run, kind, call, tool, limit, definition, undo } = about;
  const subject: Json = {
    run,
    kind,
    ...(call && { call: call.id, tool: call.name, arguments: call.digest }),
    ...(call?.parsed && { parsed: call.parsed.digest }),
    ...(tool && { definition: toolDigest(tool) }),
    ...(limit && { limit: toJson(limit) }),
    ...(definition !== undefined && { form: definition }),
    ...(undo && { undo }),
  };
  return sha256Hex(canonicalJson(subject));
}

/** The digests of definitions, which the requests of all calls of a tool share. */
const toolDigests = new WeakMap<ToolDefinition, string>();

function toolDigest(tool: ToolDefinition): string {
  const digest = toolDigests.get(tool) ?? sha256Hex(canonicalJson(toJson(tool)));
  toolDigests.set(tool, digest);
  return digest;
}

/** Converts through JSON, because the history records the definition as JSON. */
function toJson(value: object): Json {
  const json: Json = JSON.parse(JSON.stringify(value));
  return json;
}

/** Returns the work that waits for decisions, oldest request first. */
export function askingWork({ work }: RunState): readonly AskingWork[] {
  const asking = work.filter(isAsking);
  if (asking.length < 2) return asking;
  return asking.toSorted((one, other) => numberOf(one) - numberOf(other));
}

function numberOf({ request }: AskingWork): number {
  return Number(request.id.slice(1));
}

function isAsking(work: Work): work is AskingWork {
  return work.request !== undefined;
}

/** Returns the open requests, oldest first. `run`: the run's workflow id, for the commands. */
export function openRequests(state: RunState, run: string): readonly Request[] {
  return askingWork(state).map((work) => toRequest(state, work, run));
}

/** Returns the open request with this id; undefined if there is none. Does not build the others. */
export function openRequest(
  state: RunState,
  { id, run }: { readonly id: string | undefined; readonly run: string },
): Request | undefined {
  const work = askingWork(state).find(({ request }) => request.id === id);
  return work && toRequest(state, work, run);
}

/** The memo's entry for each request of a waiting run, so an inbox needs only one query. */
export interface RequestNote {
  readonly id: string;
  readonly kind: Request['kind'];
  readonly tool?: string;
  readonly digest: string;
  /** At most 300 characters; of a plan, at most 900. */
  readonly shown: string;
  /** Unix time in ms. */
  readonly raisedAt: number;
  /** Unix time in ms; null: never. */
  readonly expiresAt: number | null;
  /** The command that decides. */
  readonly fix: string;
}

/** The field of the memo. */
export interface RequestMemo {
  readonly requests: readonly RequestNote[];
  /** The total number of open requests, if the memo does not have all of them. */
  readonly requestsTotal?: number;
}

const MAX_NOTES = 20;
const MAX_SHOWN_CHARACTERS = 300;
const MAX_PLAN_CHARACTERS = 900;

/** Returns the memo of a run with open requests. `run`: its workflow id, for the commands. */
export function stateMemo(state: RunState, run: string): RequestMemo {
  const asking = askingWork(state);
  const shown = asking.slice(0, MAX_NOTES).map((work) => toRequest(state, work, run));
  return requestMemo(shown, asking.length);
}

/**
 * Returns the memo's entries for the open requests, oldest first, as far as they fit. `total`: their number, if
 * `requests` has only those that fit.
 */
export function requestMemo(requests: readonly Request[], total = requests.length): RequestMemo {
  const notes = requests.slice(0, MAX_NOTES).map(requestNote);
  return { requests: notes, ...(total > notes.length && { requestsTotal: total }) };
}

function requestNote(request: Request): RequestNote {
  const { id, kind, tool, digest, raisedAt, expiresAt, fix } = request;
  return {
    id,
    kind,
    ...(tool !== undefined && { tool }),
    digest,
    shown: briefly(request),
    raisedAt,
    expiresAt,
    fix,
  };
}

/** Returns what an inbox or a notice shows of a request: the beginning of its text, or a brief plan. */
export function briefly(request: Pick<Request, 'kind' | 'shown' | 'arguments'>): string {
  const actions = request.kind === 'plan' ? shownActions(request.arguments ?? '') : null;
  return actions === null ? shortened(request.shown) : briefPlan(actions, MAX_PLAN_CHARACTERS);
}

/** Returns the beginning of a text of a request for an inbox or a notice; `…` marks a cut. */
export function shortened(text: string): string {
  if (text.length <= MAX_SHOWN_CHARACTERS) return text;
  return `${headOf(text, MAX_SHOWN_CHARACTERS - 1)}…`;
}
