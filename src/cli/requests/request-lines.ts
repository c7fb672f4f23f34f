import { decidersText } from '../../core/definition/rules.js';
import { planAnswers, shownActions } from '../../core/plan/confirm-plan.js';
import { limitAmount, limitWord } from '../../core/requests/commands.js';
import { EFFECT_TEXTS, askerOf } from '../../core/requests/open-requests.js';
import { formatBytes } from '../../core/state/summaries.js';
import { nodeOfCall } from '../../core/state/turn-definition.js';
import { isObject, parseJson } from '../../core/text/json.js';
import { escapeArguments, headOf, printable, tailOf } from '../../core/text/text.js';
import type { Request } from '../../core/transcript/request.js';
import {
  formatAgo,
  formatCount,
  formatDateTime,
  formatSpan,
  oneLine,
  quoted,
  wrapped,
  wrappedCommand,
} from '../format/format.js';
import { planTable } from './plan-table.js';

/** How much of the arguments is shown. */
export interface ArgumentOptions {
  /** Truncate nothing. */
  readonly full: boolean;
  /** The width of a line in columns. */
  readonly width: number;
}

/** The arguments of a call, formatted for people. */
export interface ShownArguments {
  readonly lines: readonly string[];
  /** Whether something was truncated; the lines state what. */
  readonly cut: boolean;
}

/** The number of UTF-16 units that are shown from the start and the end of one argument. */
const HEAD = 300;
const TAIL = 100;
const MAX_ARGUMENTS = 40;
/** Other names are shown as JSON. */
const PLAIN_NAME = /^[A-Za-z_][\w-]*$/;

/**
 * Returns the arguments of a call, each as JSON in a line of its own, exactly as they will be
 * executed. Hidden characters are JSON escapes. Truncated parts are stated with their size.
 */
export function argumentLines(json: string, { full, width }: ArgumentOptions): ShownArguments {
  const value = parseJson(json);
  if (!isObject(value)) {
    const { text, cut } = shorten(
      value === undefined ? printable(json) : escapeArguments(json),
      full,
    );
    return { lines: wrapped(`  ${text.replaceAll('\n', '\\n')}`, width), cut };
  }
  const all = Object.entries(value);
  if (all.length === 0) return { lines: ['  none'], cut: false };
  const shown = full ? all : all.slice(0, MAX_ARGUMENTS);
  const each = shown.map(([name, argument]) => oneArgument(name, argument, full));
  const left = all.length - shown.length;
  const rest = left > 0 ? [`… ${formatCount(left, 'more argument')}`] : [];
  return {
    lines: [...each.map(({ text }) => text), ...rest].flatMap((line) =>
      wrapped(`  ${line}`, width),
    ),
    cut: left > 0 || each.some(({ cut }) => cut),
  };
}

interface Shortened {
  readonly text: string;
  readonly cut: boolean;
}

function oneArgument(name: string, value: unknown, full: boolean): Shortened {
  const { text, cut } = shorten(JSON.stringify(value), full);
  const label = shorten(PLAIN_NAME.test(name) ? name : JSON.stringify(name), full);
  return { text: `${label.text}: ${text}`, cut: cut || label.cut };
}

/** Keeps the head and the tail, and states the size of the omitted part. */
function shorten(json: string, full: boolean): Shortened {
  if (full || json.length <= HEAD + TAIL) return { text: escapeArguments(json), cut: false };
  const head = headOf(json, HEAD);
  const tail = tailOf(json, TAIL);
  const left = json.length - head.length - tail.length;
  const size = `${formatBytes(Buffer.byteLength(json))} in all`;
  const note = `[… ${formatCount(left, 'character')} not shown, ${size} …]`;
  return { text: `${escapeArguments(head)} ${note} ${escapeArguments(tail)}`, cut: true };
}

/** A request as people read it before they decide. */
export interface RequestView {
  /** The id of the run that asks. */
  readonly run: string;
  readonly request: Request;
  /**
   * Why the arguments cannot be shown, such as a blob store that is elsewhere; null if they can.
   */
  readonly unreadable: string | null;
  /** The commands that decide, as text. */
  readonly commands: readonly { readonly command: string; readonly purpose: string }[];
  /** The command that shows the arguments in full. */
  readonly whole: string;
  /** The answers follow at a prompt, so the lines name no command and no digest. */
  readonly prompts?: boolean;
}

export interface RequestLineOptions {
  /** The width of a line in columns. */
  readonly width: number;
  /** Truncate nothing. */
  readonly full: boolean;
  /** Unix time in ms. */
  readonly now: number;
}

const MAX_HEADLINE = 600;

/**
 * Returns a request, formatted for people. Code writes all of it from what the run will execute.
 * Text by the model and its provider is separate, marked, and quoted. Hidden characters are made
 * visible.
 */
export function requestLines(view: RequestView, options: RequestLineOptions): readonly string[] {
  const { run, request } = view;
  const { width } = options;
  const field = (name: string, text: string): readonly string[] =>
    wrapped(`${name}: ${oneLine(text)}`, width);
  return [
    ...wrapped(`request ${oneLine(request.id)} of run ${oneLine(run)}`, width),
    ...field(
      'asks for',
      `${KINDS[request.kind]}${request.checking ? ' (a decision is being checked)' : ''}`,
    ),
    ...(request.kind === 'plan' ? [] : field('what', whatOf(request))),
    ...toolLines(request, width),
    ...argumentsOf(view, options),
    ...(request.kind === 'plan' ? [] : whyLines(request, width)),
    ...limitOf(request).flatMap((text) => field('limit', text)),
    ...keyOf(request).flatMap((text) => field('idempotency key', text)),
    ...(request.definition === undefined ? [] : field('new form', request.definition)),
    ...foreignWords(request, width),
    ...field(
      'asked by',
      request.requester === null ? 'unknown' : `${request.requester} (not verified)`,
    ),
    ...field('may decide', decidersText(request.deciders)),
    ...field(
      'raised',
      `${formatDateTime(request.raisedAt)}, ${formatAgo(request.raisedAt, options.now)}`,
    ),
    ...field('expires', expiry(request, options.now)),
    ...(view.prompts ? [] : field('digest', request.digest)),
    ...(view.prompts ? answerLines(request, width) : commandLines(view, options)),
  ];
}

/** Returns what the person at the prompt may answer to a plan; the prompt itself lists other words. */
function answerLines(request: Request, width: number): readonly string[] {
  const actions = request.kind === 'plan' ? shownActions(request.arguments ?? '') : null;
  return actions === null ? [] : planAnswers({ actions }).flatMap((line) => wrapped(line, width));
}

function commandLines(view: RequestView, { width, now }: RequestLineOptions): readonly string[] {
  return [
    ...wrapped(decideLine(view, now), width),
    ...view.commands.flatMap(({ command, purpose }) => [
      ...wrapped(`# ${oneLine(purpose)}`, width),
      ...wrappedCommand(oneLine(command), width),
    ]),
  ];
}

/** Returns the line before the commands, or why there are none. */
function decideLine({ request, commands }: RequestView, now: number): string {
  if (commands.length > 0) return 'decide with one of:';
  if (request.checking) return 'A worker is checking a decision; no other can be made until then.';
  const isOver = request.expiresAt !== null && request.expiresAt <= now;
  return isOver ? 'It has expired, so it can no longer be decided.' : 'There is nothing to decide.';
}

const KINDS: Readonly<Record<Request['kind'], string>> = {
  approval: 'approval of a call',
  question: 'an answer to a question',
  plan: 'approval of a plan',
  client_tool: 'the result of a call that you execute',
  limit: 'a higher limit',
  outcome_unknown: 'the outcome of a call',
  safety_check: "approval of a call that the model's provider wants a person to review",
  tool_changed: 'approval of a tool that its server has changed',
};

/** Returns what the run will do, or who asks: by `describe`, else the first line of `shown`. */
function whatOf({ shown, summary }: Request): string {
  const [line = ''] = shown.split('\n');
  const what = summary ?? line;
  if (what.length <= MAX_HEADLINE) return what;
  return `${headOf(what, MAX_HEADLINE)}… (truncated; see the arguments)`;
}

/** A node of a graph has no tool. */
function toolLines({ tool, effect }: Request, width: number): readonly string[] {
  if (tool === undefined || nodeOfCall({ name: tool }) !== null) return [];
  return [
    ...wrapped(`tool: ${oneLine(tool)}`, width),
    ...(effect === undefined ? [] : wrapped(`effect: ${EFFECT_TEXTS[effect]}`, width)),
  ];
}

function argumentsOf(view: RequestView, options: RequestLineOptions): readonly string[] {
  const { request, unreadable } = view;
  const { width } = options;
  if (request.kind === 'plan') return planLines(view, options);
  // A question is quoted below.
  if (request.kind === 'question' || request.tool === undefined) return [];
  if (unreadable !== null) return wrapped(`arguments: NOT SHOWN: ${oneLine(unreadable)}`, width);
  const written = argumentLines(request.arguments ?? '{}', options);
  const parsed = request.parsed === undefined ? null : argumentLines(request.parsed, options);
  const isCut = written.cut || parsed?.cut === true;
  return [
    'arguments:',
    ...written.lines,
    ...(parsed === null ? [] : ['the tool gets:', ...parsed.lines]),
    ...(isCut ? inFull(view, width) : []),
  ];
}

/** Returns how to read what the lines above leave out. At the prompt, a word shows it. */
function inFull({ whole, prompts }: RequestView, width: number): readonly string[] {
  const what = 'TRUNCATED: before you decide, read it in full';
  if (prompts) return wrapped(`${what}; type: full`, width);
  return [...wrapped(`${what}:`, width), ...wrappedCommand(oneLine(whole), width)];
}

/** Where the text of a plan omits something. */
const PLAN_CUT = /… \[cut: |^… and /m;

/**
 * Returns the lines of a plan: a table that fits on a screen if the plan does. In full, all arguments
 * of the actions follow.
 */
function planLines(view: RequestView, options: RequestLineOptions): readonly string[] {
  const { request, unreadable } = view;
  const { width, full } = options;
  const { lines, cut } = planTable(request, width) ?? {
    lines: request.shown.split('\n').flatMap((line) => wrapped(oneLine(line), width)),
    cut: PLAN_CUT.test(request.shown),
  };
  if (!cut) return lines;
  if (!full) return [...lines, ...inFull(view, width)];
  if (unreadable !== null) {
    return [...lines, ...wrapped(`arguments: NOT SHOWN: ${oneLine(unreadable)}`, width)];
  }
  const actions = shownActions(request.arguments ?? '') ?? [];
  const each = actions.flatMap(({ id, tool, arguments: given, parsed }) => [
    ...wrapped(`arguments of ${oneLine(`${id}, ${tool}`)}:`, width),
    ...argumentLines(JSON.stringify(given), options).lines,
    ...(parsed === undefined
      ? []
      : ['the tool gets:', ...argumentLines(parsed.arguments, options).lines]),
  ]);
  return [...lines, ...each];
}

function limitOf({ limit }: Request): readonly string[] {
  if (limit === undefined) return [];
  const { name, used, limit: most } = limit;
  const of = most === null ? 'the limit of the whole run' : limitAmount(name, most);
  return [`${limitWord(name)}: ${limitAmount(name, used)} used of ${of}`];
}

function keyOf({ idempotencyKey = '' }: Request): readonly string[] {
  return idempotencyKey === '' ? [] : [idempotencyKey];
}

/**
 * Returns why the run asks. For a changed tool, this includes a diff of many lines, whose text
 * comes from its server.
 */
function whyLines({ why }: Request, width: number): readonly string[] {
  const [first = '', ...rest] = why.split('\n');
  return [
    ...wrapped(`why: ${oneLine(first)}`, width),
    ...(rest.length === 0 ? [] : quoted('in full', rest, width)),
  ];
}

/** Returns text by others, quoted so that it cannot be mistaken for our own lines. */
function foreignWords(request: Request, width: number): readonly string[] {
  const { checks = [] } = request;
  // Code writes the text of a plan, which is above.
  const { question, options = [] } = request.kind === 'plan' ? {} : request;
  const asks = askerOf({ name: request.tool ?? '' });
  const isGraph = nodeOfCall({ name: request.tool ?? '' }) !== null;
  return [
    ...(question === undefined
      ? []
      : quoted(isGraph ? asks : 'the model asks, in its own words', [question], width)),
    ...(options.length === 0
      ? []
      : quoted(isGraph ? 'answers' : 'the model offers as answers', options, width)),
    ...(checks.length === 0
      ? []
      : quoted(
          'the provider says',
          checks.map(({ code, message }) => `${code ?? 'check'}: ${message ?? 'no message'}`),
          width,
        )),
  ];
}

function expiry({ expiresAt, onExpiry }: Request, now: number): string {
  if (expiresAt === null) return 'never';
  const then = onExpiry === 'deny' ? 'then it is denied' : 'then the run stops';
  if (expiresAt <= now) return `${formatDateTime(expiresAt)}: it has expired; ${then}`;
  return `${formatDateTime(expiresAt)}, in ${formatSpan(expiresAt - now)}; ${then}`;
}
