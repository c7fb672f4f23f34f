import {
  planAnswers,
  shownActions,
  planIntroduction,
  planTitle,
} from '../../core/plan/confirm-plan.js';
import { SHOWN_DIGITS } from '../../core/requests/commands.js';
import { type Field, presentRequest, argumentTexts } from '../../core/requests/presentation.js';
import type { Standing } from '../../core/requests/refusal.js';
import { formatBytes } from '../../core/state/summaries.js';
import { isObject, parseJson } from '../../core/text/json.js';
import { shorten, escapeArguments, headOf, printable, tailOf } from '../../core/text/text.js';
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
  pieces,
} from '../format/format.js';
import type { PlannedAction } from '../../core/plan/plan.js';

/** How much of the arguments is shown. */
interface ArgumentOptions {
  /** Truncate nothing. */
  readonly full: boolean;
  /** The width of a line in columns. */
  readonly width: number;
}

/** The arguments of a call, formatted for people. */
interface ShownArguments {
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
    const { text, cut } = shortenJson(
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
  const { text, cut } = shortenJson(JSON.stringify(value), full);
  const label = shortenJson(PLAIN_NAME.test(name) ? name : JSON.stringify(name), full);
  return { text: `${label.text}: ${text}`, cut: cut || label.cut };
}

/** Keeps the head and the tail, and states the size of the omitted part. */
function shortenJson(json: string, full: boolean): Shortened {
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
  /** How the reader can decide; absent: under their own name. */
  readonly standing?: Standing;
  /** The command that shows the arguments in full. */
  readonly whole: string;
  /** What is said while a decision is being checked, and how to start a worker if none is running. */
  readonly checked?: readonly string[];
  /** The answers follow at a prompt, so the lines name no command, and the digest is short. */
  readonly prompts?: boolean;
}

interface RequestLineOptions {
  /** The width of a line in columns. */
  readonly width: number;
  /** Truncate nothing. */
  readonly full: boolean;
  /** Unix time in ms. */
  readonly now: number;
}

/**
 * Returns a request, formatted for people. Code writes all of it from what the run will execute.
 * Text by the model and its provider is separate, marked, and quoted. Hidden characters are made
 * visible.
 */
export function requestLines(view: RequestView, options: RequestLineOptions): readonly string[] {
  const { run, request } = view;
  const { width } = options;
  const { asksFor, what, tool, reasons, foreign, people } = presentRequest(request, formatDateTime);
  const fields = (all: readonly Field[]): readonly string[] =>
    all.flatMap(([name, text]) => wrapped(`${name}: ${oneLine(text)}`, width));
  const raised = formatDateTime(request.raisedAt);
  return [
    ...wrapped(`request ${oneLine(request.id)} of run ${oneLine(run)}`, width),
    ...fields([['asks for', asksFor], ...what, ...tool]),
    ...argumentsOf(view, options).lines,
    ...fields(reasons),
    ...foreign.flatMap(({ title, texts }) => quoted(title, texts, width)),
    ...fields([
      ...people,
      ['raised', `${raised}, ${formatAgo(request.raisedAt, options.now)}`],
      expiry(request, options.now),
      ['digest', view.prompts ? request.digest.slice(0, SHOWN_DIGITS) : request.digest],
    ]),
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
    ...(view.checked ?? wrapped(decideLine(view, now), width)),
    ...view.commands.flatMap(({ command, purpose }) => [
      ...wrapped(`# ${oneLine(purpose)}`, width),
      ...wrappedCommand(oneLine(command), width),
    ]),
  ];
}

/** Returns the line before the commands, or why there are none. */
function decideLine({ request, commands, standing }: RequestView, now: number): string {
  if (commands.length > 0) {
    if (standing?.name !== 'other') return 'decide with one of:';
    return `You may not decide (${oneLine(standing.problem ?? '')}). Give the name of someone who may as NAME:`;
  }
  const isOver = request.expiresAt !== null && request.expiresAt <= now;
  if (isOver) return 'It has expired, so it can no longer be decided.';
  if (standing?.name === 'none') return `No command can decide: ${oneLine(standing.problem ?? '')}`;
  return 'There is nothing to decide.';
}

/** Whether `requestLines` leaves something out of what the run will execute. */
export function hidesArguments(view: RequestView, options: RequestLineOptions): boolean {
  return argumentsOf(view, options).cut;
}

function argumentsOf(view: RequestView, options: RequestLineOptions): ShownArguments {
  const { request, unreadable } = view;
  const { width } = options;
  if (request.kind === 'plan') return planLines(view, options);
  // A question is quoted below.
  const isQuestion = request.kind === 'question' && request.server === undefined;
  if (isQuestion || request.tool === undefined) return { lines: [], cut: false };
  if (unreadable !== null) return notShown(unreadable, width);
  const written = argumentLines(request.arguments ?? '{}', options);
  const parsed = request.parsed === undefined ? null : argumentLines(request.parsed, options);
  const cut = written.cut || parsed?.cut === true;
  const lines = [
    'arguments:',
    ...written.lines,
    ...(parsed === null ? [] : ['the tool gets:', ...parsed.lines]),
    ...(cut ? inFull(view, width) : []),
  ];
  return { lines, cut };
}

function notShown(why: string, width: number): ShownArguments {
  return { lines: wrapped(`arguments: NOT SHOWN: ${oneLine(why)}`, width), cut: true };
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
function planLines(view: RequestView, options: RequestLineOptions): ShownArguments {
  const { request, unreadable } = view;
  const { width, full } = options;
  const { lines, cut } = planTable(request, width) ?? {
    lines: request.shown.split('\n').flatMap((line) => wrapped(oneLine(line), width)),
    cut: PLAN_CUT.test(request.shown),
  };
  if (!cut) return { lines, cut };
  if (!full) return { lines: [...lines, ...inFull(view, width)], cut };
  if (unreadable !== null) {
    return { lines: [...lines, ...notShown(unreadable, width).lines], cut };
  }
  const actions = shownActions(request.arguments ?? '') ?? [];
  const each = actions.flatMap(({ id, tool, arguments: given, parsed }) => [
    ...wrapped(`arguments of ${oneLine(`${id}, ${tool}`)}:`, width),
    ...argumentLines(JSON.stringify(given), options).lines,
    ...(parsed === undefined
      ? []
      : ['the tool gets:', ...argumentLines(parsed.arguments, options).lines]),
  ]);
  return { lines: [...lines, ...each], cut: false };
}

const ON_EXPIRY = {
  deny: 'it is denied',
  stop: 'the run stops',
  expired: 'the graph takes its exit `expired`',
} as const satisfies Readonly<Record<Request['onExpiry'], string>>;

/** Returns the line about the end of a request. One that has expired is open only until a worker runs. */
function expiry({ expiresAt, onExpiry, server }: Request, now: number): Field {
  if (expiresAt === null) return ['expires', 'never'];
  const end = server === undefined ? ON_EXPIRY[onExpiry] : 'the server gets `cancel`';
  const at = formatDateTime(expiresAt);
  if (expiresAt <= now) return ['expired', `${at}; ${end} when a worker runs`];
  return ['expires', `${at}, in ${formatSpan(expiresAt - now)}; then ${end}`];
}

/** A plan as a table for people. */
interface PlanTable {
  readonly lines: readonly string[];
  /** Whether some arguments are cut; a `…` marks them. */
  readonly cut: boolean;
}

/** The lines of an action beside its number, tool, and effect: a plan of ten fits on a screen. */
const LINES = 2;
const MAX_TOOL = 24;
/** The characters of one argument if not all of them fit. */
const MAX_ARGUMENT = 24;
/** Below this width of the last column, it has lines of its own. */
const MIN_COLUMNS = 28;
const GAP = 2;
/** A reference to the result of an earlier action, in JSON; quotes in a text are escaped. */
const REFERENCE = /\{"\$ref":"([\w-]{1,20})"(?:,"path":"([^"\\]{1,80})")?\}/g;

/**
 * Returns the plan of a request as a table: number, tool, effect, and the description by the tool
 * with the arguments. `<a1.id>` stands for a value of an earlier result. `!` marks the actions that
 * need approval. Returns null if the actions are not in the request. `width`: in columns.
 */
function planTable(request: Request, width: number): PlanTable | null {
  const actions = shownActions(request.arguments ?? '');
  if (actions === null) return null;
  const { effects = {} } = request;
  const rows = actions.map((action) => ({
    id: `${action.asks === undefined ? ' ' : '!'} ${oneLine(action.id)}`,
    tool: oneLine(action.tool),
    effect: effects[action.tool] ?? '',
    what: whatOf(action),
  }));
  const wide = (name: 'id' | 'tool' | 'effect'): number =>
    Math.max(name === 'id' ? 4 : name.length, ...rows.map((row) => row[name].length));
  const [id, tool, effect] = [wide('id'), Math.min(MAX_TOOL, wide('tool')), wide('effect')];
  const left = id + tool + effect + 3 * GAP;
  const stacked = width - left < MIN_COLUMNS;
  const indent = stacked ? id + GAP : left;
  const head = (row: { id: string; tool: string; effect: string }): string =>
    [row.id.padEnd(id), row.tool.padEnd(stacked ? 0 : tool), row.effect.padEnd(effect)].join('  ');
  let cut = false;
  const lines = rows.flatMap((row) => {
    const fitted = fitAction(row.what, width - indent);
    cut ||= fitted.cut;
    const shown = fitted.lines;
    const title = head(row);
    const beside = !stacked && title.length <= left - GAP;
    const rest = shown.map((line) => ' '.repeat(indent) + line);
    if (!beside) return [...wrapped(title.trimEnd(), width), ...rest];
    return [`${title.padEnd(left)}${shown[0] ?? ''}`.trimEnd(), ...rest.slice(1)];
  });
  const asking = actions.filter(({ asks }) => asks !== undefined);

  const introduction = planIntroduction(request.question ?? '', actions.length);
  return {
    lines: [
      ...(introduction === '' ? [] : quoted('the graph says', [introduction], width)),
      ...wrapped(`${planTitle(actions)}:`, width),
      ...(stacked
        ? []
        : [`${head({ id: '  #', tool: 'tool', effect: 'effect' }).padEnd(left)}arguments`]),
      ...lines,
      ...reasonLines(asking).flatMap((line) => wrapped(line, width)),
    ],
    cut,
  };
}

/** The description by the tool, if there is one, and the arguments, each as a text of one line. */
interface What {
  readonly described: string | null;
  readonly given: readonly string[];
  /** The actions that must end first although no argument refers to them. */
  readonly order: string;
}

function whatOf(action: PlannedAction): What {
  const { shown, arguments: given, parsed, after = [] } = action;
  const texts = argumentTexts({
    arguments: JSON.stringify(given),
    ...(parsed !== undefined && { parsed }),
  });
  const named = texts.map((text) =>
    oneLine(text).replaceAll(REFERENCE, (_, id: string, path?: string) =>
      path === undefined ? `<${id}>` : `<${id}.${path}>`,
    ),
  );
  const order = after.length === 0 ? '' : ` (after ${after.join(', ')})`;
  return { described: shown === undefined ? null : oneLine(shown), given: named, order };
}

/** Fits an action into its lines: long arguments are cut first, so that each of them is seen. */
function fitAction({ described, given, order }: What, columns: number): PlanTable {
  const most = described === null ? LINES : LINES - 1;
  const line = (texts: readonly string[]): string => texts.join(', ') + order;
  const whole = fit(line(given), { columns, most });
  const short = given.map(shortArgument);
  const rest = whole.cut ? fit(line(short), { columns, most }) : whole;
  if (described === null) return { ...rest, cut: whole.cut };
  const first = fit(described, { columns, most: 1 });
  return { lines: [...first.lines, ...rest.lines], cut: first.cut || whole.cut };
}

/** Cuts a long argument; a text keeps the quote at its end, so that the next argument is not part of it. */
function shortArgument(text: string): string {
  if (text.length <= MAX_ARGUMENT || !text.endsWith('"')) return shorten(text, MAX_ARGUMENT);
  return `${shorten(text, MAX_ARGUMENT - 1)}"`;
}

/** Fits a text into some lines; `…` marks a cut. */
function fit(
  text: string,
  { columns, most }: { readonly columns: number; readonly most: number },
): PlanTable {
  const all = pieces(text, columns);
  if (all.length <= most) return { lines: all, cut: false };
  const last = pieces(all[most - 1] ?? '', columns - 1)[0] ?? '';
  return { lines: [...all.slice(0, most - 1), `${last.trimEnd()}…`], cut: true };
}

/** Returns why actions need approval, with those that have the same reason in one line. */
function reasonLines(asking: readonly PlannedAction[]): readonly string[] {
  const groups = new Map<string, string[]>();
  for (const { id, asks } of asking) {
    const again = asks?.deciders === undefined ? '' : '; the people who may decide are asked again';
    const why = `${oneLine(asks?.why ?? '')}${again}`;
    groups.set(why, [...(groups.get(why) ?? []), id]);
  }
  return [...groups].map(([why, ids]) => `! ${ids.join(', ')}: ${why}`);
}
