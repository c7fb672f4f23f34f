import type { findTool } from '../calls/batch.js';
import { decidersText } from '../definition/rules.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import { briefPlan, planTitle, shownActions } from '../plan/confirm-plan.js';
import { formatBytes } from '../state/summaries.js';
import { nodeOfCall } from '../state/turn-definition.js';
import { type AskingWork, isUndo } from '../state/work.js';
import { isObject, parseJson } from '../text/json.js';
import { shorten, escapeArguments, escapeJson, headOf, printable } from '../text/text.js';
import type { ToolCall } from '../transcript/messages.js';
import type { LimitReached, Request, ServerAsk } from '../transcript/request.js';
import { isYesOrNo } from './commands.js';
import { limitAmount, limitWord } from './limit-words.js';
import { askOf, formLines, hostOf, resultLines } from './server-ask.js';
import { ASKED_UNDO, isUndoing, whatFields } from './undo-text.js';

/**
 * What people see of a request, from one line to everything. Each place that shows a request takes
 * its words from here and adds only its own layout, the arguments, and the times.
 */
interface Presentation {
  /** One line for lists and progress: the tool, the limit, or who asks, and then what. */
  readonly headline: string;
  /** A few lines for an inbox or a notice; the memo of a run records them. */
  readonly notice: string;
  /** What it asks for, such as `approval of a call`. */
  readonly asksFor: string;
  /** What the run will do, or who asks, by code; empty for a plan, whose actions say it. */
  readonly what: readonly Field[];
  /** The tool that is called; empty for a node of a graph. */
  readonly tool: readonly Field[];
  /** The idempotency key, the new form of a tool, and the reason, of which `foreign` may quote more. */
  readonly reasons: readonly Field[];
  /** Who asked, and who may decide. */
  readonly people: readonly Field[];
  /** Text by others. It must not look like a line of ours, so it is quoted. */
  readonly foreign: readonly Quote[];
}

/** A line by code: its name, and one line of text. */
export type Field = readonly [name: string, text: string];

/** Text by others, and who wrote it. */
interface Quote {
  readonly title: string;
  readonly texts: readonly string[];
}

type Presented = Pick<Request, 'kind' | 'shown'> & Partial<Request>;

/**
 * Returns what people see of a request, wherever it is shown. `formatTime`: formats a Unix time in ms;
 * default: in ISO 8601.
 */
export function presentRequest(
  request: Presented,
  formatTime?: (at: number) => string,
): Presentation {
  const { kind, shown, summary, question = '', arguments: given = '', server } = request;
  const actions = kind === 'plan' ? shownActions(given) : null;
  const [title = ''] = shown.split('\n');
  const more = kind === 'question' ? printedLine(question) : summary;
  const line = more === undefined ? withPairs(title, request) : `${title}: ${more}`;
  return {
    headline: actions === null ? line : planTitle(actions),
    notice: actions === null ? noticeOf(request) : briefPlan(actions, MAX_LONG_NOTICE),
    asksFor: `${isUndoing(request) ? ASKED_UNDO : ASKED[kind]}${request.checking ? ' (a decision is being checked)' : ''}`,
    // A question of a graph is quoted with who asks, and the reason of a server's says who asks.
    what:
      kind === 'plan' || server !== undefined || isYesOrNo({ kind, tool: request.tool ?? '' })
        ? []
        : whatFields(headlineOf(summary ?? title) + wholeRun(request), request, formatTime),
    tool: toolFields(request),
    reasons: reasonFields(request),
    people: [
      ['asked by', requesterText(request)],
      ['may decide', decidersText(request.deciders ?? [])],
    ],
    foreign: quotesOf(request),
  };
}

/** Maximum characters of the arguments in a headline, and of one of them. */
const [MAX_PAIRS, MAX_PAIR] = [120, 60];

/** Adds the arguments of a call that its author does not describe: `pay · to: "ann", euros: 5`. */
function withPairs(title: string, { tool, arguments: given }: Presented): string {
  if (tool === undefined || nodeOfCall({ name: tool }) !== null) return title;
  const pairs = pairsOf(given ?? '');
  return pairs === '' ? title : `${title} · ${pairs}`;
}

/** Returns the arguments of a call in one short line, each with its name; empty if it has none. */
function pairsOf(json: string): string {
  const { entries } = formOf({ arguments: json });
  const pairs = (entries ?? []).map((entry) => {
    const [line = ''] = linesOf({ entries: [entry] }, ([, argument]) => escapeArguments(argument));
    return shorten(line, MAX_PAIR);
  });
  return shorten(pairs.join(', '), MAX_PAIRS);
}

function requesterText({ requester, requesterDoor: door }: Presented): string {
  if (requester == null) return 'unknown';
  if (door !== undefined) return `${requester} (verified by ${door})`;
  return `${requester.replace(/^unverified:/, '')} (not verified)`;
}

const ASKED: Readonly<Record<Request['kind'], string>> = {
  approval: 'approval of a call',
  question: 'an answer to a question',
  plan: 'approval of a plan',
  client_tool: 'the result of a call that you execute',
  limit: 'a higher limit',
  outcome_unknown: 'the outcome of a call',
  safety_check: "approval of a call that the model's provider wants a person to review",
  tool_changed: 'approval of a tool that its server has changed',
};

const MAX_HEADLINE = 600;

function headlineOf(what: string): string {
  if (what.length <= MAX_HEADLINE) return what;
  return `${headOf(what, MAX_HEADLINE)}… (truncated; see the arguments)`;
}

/** A limit of the whole run is reached in the turn that asks, which has a share of it. */
function wholeRun({ limit }: Presented): string {
  return limit?.limit === null ? ' of the limit of the whole run' : '';
}

function toolFields({ tool, effect, url }: Presented): readonly Field[] {
  if (tool === undefined || nodeOfCall({ name: tool }) !== null) return [];
  return [
    ['tool', tool],
    ...(effect ? [['effect', EFFECT_TEXTS[effect]] as const] : []),
    ...(url === undefined ? [] : [['opens', hostOf(url)] as const]),
  ];
}

/**
 * Returns the parts of a reason: its first line, the lines of a change that its first line announces, which
 * are quoted, and the last line, which is by code as well.
 */
function partsOf(why: string): {
  readonly reason: string;
  readonly change: readonly string[];
  readonly advice: string;
} {
  const [reason = '', ...rest] = why.split('\n');
  if (!reason.endsWith(':') || rest.length < 2) return { reason, change: rest, advice: '' };
  return { reason: reason.slice(0, -1), change: rest.slice(0, -1), advice: rest.at(-1) ?? '' };
}

/** A plan says why with its actions. For a changed tool, the lines of the change are quoted. */
function reasonFields({
  kind,
  why = '',
  idempotencyKey = '',
  definition,
  refused,
  tool = '',
}: Presented): readonly Field[] {
  const { reason, advice } = partsOf(why);
  return [
    ...(idempotencyKey === '' ? [] : [['idempotency key', idempotencyKey] as const]),
    ...(definition === undefined ? [] : [['new form', definition] as const]),
    ...(kind === 'plan' || isYesOrNo({ kind, tool }) ? [] : [['why', reason] as const]),
    ...(advice === '' ? [] : [['what to do', advice] as const]),
    ...(refused === undefined
      ? []
      : [['last decision', `refused: ${inOneLine(refused)}`] as const]),
  ];
}

/** Returns a text with a list of problems in one line. */
export function inOneLine(text: string): string {
  const [head = '', ...problems] = text.split('\n');
  return [head, problems.map((line) => line.replace(/^- /, '')).join('; ')].join(' ').trim();
}

function quotesOf(request: Presented): readonly Quote[] {
  const { kind, why = '', checks = [], tool: name = '', server, form, url } = request;
  // Code writes the text and the reason of a plan.
  if (kind === 'plan') return [];
  const { question, options = [], result } = request;
  if (server !== undefined) {
    return [
      { title: 'the server asks, in its own words', texts: [question ?? ''] },
      ...(form === undefined
        ? []
        : [{ title: 'the fields of the answer, in its words', texts: formLines(form) }]),
      ...(url === undefined
        ? []
        : [{ title: 'the address that it wants you to open', texts: [url] }]),
    ];
  }
  const isGraph = nodeOfCall({ name }) !== null;
  const asks = isGraph ? askerOf({ name }) : 'the model asks, in its own words';
  const quotes = [
    { title: 'the change', texts: partsOf(why).change },
    { title: asks, texts: question === undefined ? [] : [question] },
    { title: 'the result is JSON', texts: result === undefined ? [] : resultLines(result) },
    { title: isGraph ? 'answers' : 'the model offers as answers', texts: options },
    {
      title: 'the provider says',
      texts: checks.map(({ code, message }) => `${code ?? 'check'}: ${message ?? 'no message'}`),
    },
  ];
  return quotes.filter(({ texts }) => texts.length > 0);
}

const MAX_NOTICE_CHARACTERS = 300;
/** Of a plan, and of a server's form, after which the call and its arguments follow. */
const MAX_LONG_NOTICE = 900;

/** Returns the beginning of a text of a request for an inbox or a notice; `…` marks a cut. */
export function noticeText(text: string): string {
  return shorten(text, MAX_NOTICE_CHARACTERS);
}

function noticeOf({ shown, server }: Presented): string {
  return server === undefined ? noticeText(shown) : shorten(shown, MAX_LONG_NOTICE);
}

/** Returns the text of a request to raise a limit. */
export function limitText({ name, used, limit, scope }: LimitReached): string {
  const most = limit === null ? '' : ` of ${limitAmount(name, limit)}`;
  return `limit ${scope === 'run' ? 'run.' : ''}${limitWord(name)}: ${limitAmount(name, used)}${most} used`;
}

/**
 * Returns the text of a request about a call: what it is about, with every argument. `shown` of the request holds it, and
 * `presentRequest` takes its words from there. `tool`: the run's pinned definition.
 */
export function textOfRequest(
  work: AskingWork,
  call: ToolCall | undefined,
  tool: ReturnType<typeof findTool>,
): string {
  const { name, request } = work;
  if (call === undefined) return '';
  // The engine generated the text from the plan's actions.
  if (request.kind === 'plan') return questionOf(call).question ?? '';
  if (request.kind === 'question') {
    const ask = askOf(work);
    return ask === undefined ? shownQuestion(call) : shownAsk(ask, call, tool);
  }
  return isUndo({ name }) ? `undo ${shownCall(call, tool)}` : shownCall(call, tool);
}

/** Returns a question: who asks by code, then the words of the model or the graph, quoted. */
function shownQuestion(call: ToolCall): string {
  const { question = '', options = [] } = questionOf(call);
  return [
    askerOf(call),
    ...quotedLines(question),
    ...(options.length === 0
      ? []
      : [`answers: ${escapeJson(options.map((one) => JSON.stringify(one)).join(', '))}`]),
  ].join('\n');
}

/** Returns what an MCP server asks, quoted, the host of an address, and the call that waits for it. */
function shownAsk(
  { message, form, url }: ServerAsk,
  call: ToolCall,
  tool: ToolDefinition | undefined,
): string {
  return [
    serverAsks(tool?.mcp?.server ?? '', call.name),
    ...quotedLines(message),
    ...(form === undefined
      ? []
      : ['fields of the answer:', ...formLines(form).flatMap(quotedLines)]),
    ...(url === undefined ? [] : [`opens: ${printedLine(hostOf(url))}`, ...quotedLines(url)]),
    shownCall(call, tool),
  ].join('\n');
}

function serverAsks(server: string, tool: string): string {
  return `MCP server "${printedLine(server)}" asks before it executes ${printedLine(tool)}`;
}

function quotedLines(text: string): readonly string[] {
  return printable(text)
    .split('\n')
    .map((line) => `> ${line}`);
}

/** Returns who asks a question: the model, or a node of the graph. */
function askerOf(call: Pick<ToolCall, 'name'>): string {
  const node = nodeOfCall(call);
  return node === null ? 'the model asks' : `the graph asks at node ${printedLine(node)}`;
}

/** Returns what a call asks a person, and the answers that it suggests. */
export function questionOf(call: ToolCall): Pick<Request, 'question' | 'options'> {
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

/** Returns a text as one line, with hidden characters escaped. */
export function printedLine(text: string): string {
  return printable(text).replaceAll(/[\n\t]/g, ' ');
}

/** What each effect of a tool means to a person who decides about a call. */
const EFFECT_TEXTS = {
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
