import { LIMITS } from '../../core/definition/definition.js';
import {
  planAnswerFault,
  readPlanAnswer,
  readPlanDecision,
  readYesOrNo,
  shownActions,
  someText,
} from '../../core/plan/confirm-plan.js';
import { checkLimits, checkRecordedLimits, limitMaximum } from '../../core/input/limits.js';
import type { PlannedAction } from '../../core/plan/plan.js';
import { formLines } from '../../core/requests/server-ask.js';
import { checkBySchema } from '../../output/schema-check.js';
import { isYesOrNo } from '../../core/requests/commands.js';
import { limitWords } from '../../core/requests/limit-words.js';
import { visible } from '../../core/state/summaries.js';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  isObject,
  parseForeignJson,
} from '../../core/text/json.js';
import { reasonOfNo } from '../../core/text/refusal-words.js';
import { readDuration } from '../../core/text/text.js';
import type { Decision, DecisionKind, Request } from '../../core/transcript/request.js';

/** A choice at the prompt: a decision, `later`, or `full` to see the whole request. */
type Choice = DecisionKind | 'later' | 'full';

/** The content of a decision, without the request that it is about. */
export type Decided = Omit<Decision, 'request' | 'digest' | 'by'>;

/** What the prompt asks for after a choice that is not complete by itself. */
interface FollowUp {
  readonly question: string;
  /** Returns the decision, or a text about what is wrong with the line. */
  readonly read: (line: string) => Decided | string;
  /** What an empty line decides; absent: nothing, so it leads back to the choices. */
  readonly empty?: string;
}

/** Returns the words that the prompt offers for a request. It takes each of them as it is. */
export function wordsOf(request: Request): readonly string[] {
  if (request.kind === 'plan') {
    const [first, second] = shownActions(request.arguments ?? '') ?? [];
    const some = first !== undefined && second === undefined ? [] : [`some ${first?.id ?? 'IDS'}`];
    return ['yes', 'no', ...some, 'nothing', 'edit …', 'full', 'later'];
  }
  if (isYesOrNo(request)) return ['yes', 'no', 'full', 'later'];
  const choices = choicesOf(request);
  return choices.includes('approve')
    ? choices.map((choice) => PLAIN_WORDS[choice] ?? choice)
    : choices;
}

/** Returns what the prompt shows: the answers that a question offers, if they are short, and the words. */
export function promptWords(request: Request): readonly string[] {
  const words = wordsOf(request);
  const { kind, options = [] } = request;
  const isAsked = kind === 'question' && !isYesOrNo(request) && !isServerAsk(request);
  if (!isAsked || options.join(' / ').length > MAX_SHOWN) return words;
  // An answer that is spelled like a word is meant before the word.
  return [...options.map(visible), ...words.filter((word) => !options.includes(word))];
}

/** The most characters of the offered answers in the prompt. */
const MAX_SHOWN = 60;

/** What the prompt calls the decisions of an approval. Their own names are taken, too. */
const PLAIN_WORDS: Partial<Record<Choice, string>> = { approve: 'yes', deny: 'no' };

/**
 * Returns the word of which a line is the only letter: `yes` or `no`, if it is offered and no other word that is
 * offered begins with it. Returns any other line as it is.
 */
export function spelledOut(line: string, request: Request): string {
  const letter = line.trim().toLowerCase();
  const meant = { y: 'yes', n: 'no' }[letter];
  if (meant === undefined) return line;
  const [word, ...others] = wordsOf(request).filter((one) => one.startsWith(letter));
  return word === meant && others.length === 0 ? word : line;
}

/**
 * Returns the decision that a line makes in plain words: an answer to a plan, yes or no, or one of the
 * answers that a question offers. Null for any other line. A single letter decides nothing, unless the question offers it or
 * `spelledOut` has made a word of it.
 */
export function readPlain(line: string, request: Request): Decided | null {
  const text = line.trim();
  const { kind, decisions, options = [] } = request;
  if (kind === 'question' && !isYesOrNo(request) && options.includes(text)) {
    return { as: 'answer', result: text };
  }
  if (text.length < 2) return null;
  const note = reasonOfNo(text);
  if (note !== null && kind !== 'question' && decisions.includes('deny')) {
    return { as: 'deny', note };
  }
  if (kind === 'plan') return planDecision(text, shownActions(request.arguments ?? '') ?? []);
  const yesOrNo = readYesOrNo(text);
  if (isYesOrNo(request)) return yesOrNo && { as: 'answer', result: yesOrNo };
  if (kind === 'question') {
    const option = options.find((one) => one.toLowerCase() === text.toLowerCase());
    return option === undefined ? null : { as: 'answer', result: option };
  }
  // A denial is asked for its reason.
  return yesOrNo === 'yes' && decisions.includes('approve') ? { as: 'approve' } : null;
}

function planDecision(text: string, actions: readonly PlannedAction[]): Decided | null {
  const decision = readPlanDecision(text, actions);
  // The planner reads the words of the change.
  return decision?.as === 'edit' ? { as: 'answer', result: text } : decision;
}

/** Returns a text of a run, which names decisions as programs do, in the words that the prompt offers. */
export function inOfferedWords(text: string, request: Request): string {
  const words = wordsOf(request);
  return text.replaceAll(/"(approve|deny)"/g, (named, as: 'approve' | 'deny') => {
    const plain = PLAIN_WORDS[as];
    return plain !== undefined && words.includes(plain) ? `"${plain}"` : named;
  });
}

/** Returns what a decision is called: an answer to a plan is what its words mean. */
export function decidedName(
  { kind, arguments: shown = '' }: Request,
  { as, result }: Pick<Decided, 'as' | 'result'>,
): string {
  if (kind !== 'plan' || as !== 'answer' || typeof result !== 'string') return as;
  return readPlanDecision(result, shownActions(shown) ?? [])?.as ?? as;
}

/** Returns the choices for a request by the names of the decisions. */
function choicesOf({ decisions }: Pick<Request, 'decisions'>): readonly Choice[] {
  return [...decisions, 'full', 'later'];
}

/**
 * Returns the choice that a line names, by a word or a prefix; null if it matches none or several.
 */
export function readChoice(line: string, request: Pick<Request, 'decisions'>): Choice | null {
  const word = line.trim().toLowerCase();
  if (word === '') return null;
  const choices = choicesOf(request);
  if (readYesOrNo(word) === 'no' && word.length > 1 && choices.includes('deny')) return 'deny';
  const exact = choices.find((choice) => choice === word);
  const [found, ...others] = choices.filter((choice) => choice.startsWith(word));
  // A single letter is too easy to type for a decision that cannot be undone.
  if (exact !== undefined) return exact;
  return found === undefined || others.length > 0 || word.length < 2 ? null : found;
}

/** A decision by its name and what it needs, such as `edit {"to":"ann"}`. */
const NAMED = /^([a-z]+)[\s:]\s*(\S.*)$/is;

/**
 * Returns the decision of a line that names it and gives what it needs, or a text about what is wrong
 * with it; null for any other line, for a plan, whose answers are words of their own, and for a form,
 * whose fields are asked for one by one.
 */
export function readNamed(line: string, request: Request): Decided | string | null {
  const [, word = '', rest = ''] = NAMED.exec(line.trim()) ?? [];
  const as = request.decisions.find((name) => name === word.toLowerCase());
  if (as === undefined || request.kind === 'plan' || isServerAsk(request)) return null;
  return followUp(as, request)?.read(rest) ?? null;
}

/** Returns what to ask before the decision can be sent; null if it is complete. */
export function followUp(as: DecisionKind, request: Request): FollowUp | null {
  switch (as) {
    case 'deny':
    case 'abandon':
      // The server learns that it was declined, and no model reads a reason.
      if (isServerAsk(request)) return null;
      return {
        question: 'Reason (optional):',
        empty: 'gives no reason',
        read: (line) => ({ as, ...(line.trim() !== '' && { note: line.trim() }) }),
      };
    case 'some':
      return chooseActions(shownActions(request.arguments ?? ''));
    case 'edit':
      return {
        question: 'All new arguments as JSON:',
        read: (line) => readArguments(line, request),
      };
    case 'answer':
    case 'happened':
      // Whoever says so has opened the address and is done there.
      if (request.url !== undefined) return null;
      return request.kind === 'question' || request.kind === 'plan'
        ? { question: 'Your answer:', read: (line) => answered(as, line) }
        : {
            question: `The result of the call as JSON${as === 'happened' ? ' (optional)' : ''}:`,
            read: (line) => readResult(as, line),
            ...(as === 'happened' && { empty: 'gives no result' }),
          };
    case 'raise':
      return {
        question: raiseQuestion(request),
        read: (line) => readRaise(line, request),
      };
    default:
      return null;
  }
}

/** Asks for actions of a plan. `actions`: null if they are not shown, so the run checks the ids. */
function chooseActions(actions: readonly PlannedAction[] | null): FollowUp {
  const as = 'some';
  const takesNone = actions === null || readPlanAnswer(someText(undefined), actions) !== null;
  return {
    question: `Ids of the actions${takesNone ? ' (empty: all that need no approval)' : ''}:`,
    ...(takesNone && { empty: 'executes all that need no approval' }),
    read: (line) => {
      const chosen: Pick<Decided, 'actions'> = line.trim() === '' ? {} : chosenActions(line);
      if (chosen.actions?.length === 0) return `expected ids, got ${visible(line.trim())}`;
      if (actions === null || readPlanAnswer(someText(chosen.actions), actions)?.as === as) {
        return { as, ...chosen };
      }
      const ids = actions.map(({ id }) => id).join(', ');
      const fault = planAnswerFault(someText(chosen.actions), actions);
      return `expected ids with all dependencies${fault === null ? '' : `: ${visible(fault)}`}; the actions are ${ids}`;
    },
  };
}

/** Whether an MCP server asks, with a form or an address. */
function isServerAsk({ form, url }: Request): boolean {
  return form !== undefined || url !== undefined;
}

/** Returns the value that a line gives a field of a form, or what is wrong with it or with the line. */
async function checkedField(
  name: string,
  schema: Json | undefined,
  line: string,
): Promise<{ readonly value: Json } | string> {
  const read = readField(schema, line);
  if (typeof read === 'string' || !isJsonObject(schema)) return read;
  const fault = await checkBySchema(schema, read.value, name);
  return fault === null ? read : visible(fault);
}

/** Returns the value that a line gives a field of a form by its type, or what is wrong with the line. */
function readField(schema: Json | undefined, line: string): { readonly value: Json } | string {
  const field = isJsonObject(schema) ? schema : {};
  const text = line.trim();
  const number = Number(text);
  switch (field['type']) {
    case 'string': {
      // The choices are shown as JSON.
      const quoted = /^".*"$/.test(text) ? parseForeignJson(text) : null;
      return { value: quoted?.ok && typeof quoted.value === 'string' ? quoted.value : line };
    }
    case 'number':
    case 'integer':
      return text !== '' && Number.isFinite(number) ? { value: number } : 'expected a number';
    case 'boolean': {
      const yesOrNo = { true: 'yes', false: 'no' }[text] ?? readYesOrNo(text);
      return yesOrNo === null ? 'expected yes or no' : { value: yesOrNo === 'yes' };
    }
    case 'array':
      if (!text.startsWith('[')) return { value: text.split(',').map((one) => one.trim()) };
      break;
    default:
  }
  const parsed = parseForeignJson(text);
  if (!parsed.ok) return parsed.isJson ? parsed.problem : 'expected JSON';
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  return { value: parsed.value as Json };
}

/** Returns the ids in a list with commas or blanks. */
export function chosenActions(list: string): { readonly actions: readonly string[] } {
  return { actions: list.split(/[\s,]+/).filter((id) => id !== '') };
}

/** Arguments up to this length are given as an example. */
const EXAMPLE_CHARACTERS = 200;

function readArguments(line: string, { arguments: now = '' }: Request): Decided | string {
  const parsed = parseForeignJson(line);
  if (!parsed.ok && parsed.isJson) return parsed.problem;
  const value = parsed.ok ? parsed.value : undefined;
  if (!isObject(value)) {
    const why = parsed.ok ? '' : ` (${visible(parsed.problem)})`;
    const example = now === '' || now.length > EXAMPLE_CHARACTERS ? '' : `; now: ${visible(now)}`;
    return `expected a JSON object with all arguments${why}${example}`;
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON.parse returns JSON
  return { as: 'edit', arguments: value as Readonly<Record<string, Json>> };
}

function answered(as: DecisionKind, line: string): Decided | string {
  return line.trim() === '' ? 'expected an answer' : { as, result: line.trim() };
}

function readResult(as: DecisionKind, line: string): Decided | string {
  // A call that happened may have no result.
  if (line.trim() === '' && as === 'happened') return { as };
  const parsed = parseForeignJson(line);
  if (!parsed.ok) {
    return parsed.isJson ? parsed.problem : 'expected JSON, such as "done" or {"receipt": 7}';
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  return { as, result: parsed.value as Json };
}

function raiseQuestion({ limit }: Request): string {
  if (limit === undefined) return 'Raise the limit by:';
  const unit = LIMITS[limit.name] === 'time' ? ' (such as 10m)' : '';
  return `Raise ${limitWords(limit)} by${unit}:`;
}

function readRaise(line: string, { limit }: Request): Decided | string {
  const text = line.trim();
  const got = text === '' ? 'nothing' : visible(text);
  const { name = 'steps' } = limit ?? {};
  const isTime = LIMITS[name] === 'time';
  const by = isTime ? (readDuration(text) ?? Number.NaN) : Number(text || Number.NaN);
  if (limit !== undefined && checkLimits({ [name]: by }, '') === null) {
    return { as: 'raise', arguments: { [name]: by } };
  }
  if (checkRecordedLimits({ [name]: by }, '') === null) {
    return `expected at most ${limitMaximum(name)?.text}, got ${got}`;
  }
  if (!isTime) {
    return `expected a positive ${LIMITS[name] === 'money' ? '' : 'whole '}number, got ${got}`;
  }
  return /^\d+(?:\.\d+)?$/.test(text)
    ? `expected a duration with its unit, such as ${text}m or ${text}s`
    : `expected a duration, such as 10m, got ${got}`;
}

/**
 * Asks for what a choice needs beside itself, until it is complete; null if a needed line is empty, so
 * the person chooses again. `note` shows what is wrong.
 */
export async function completed(
  { as, request }: { readonly as: DecisionKind; readonly request: Request },
  {
    ask,
    note,
  }: {
    readonly ask: (question: string) => Promise<string>;
    readonly note: (line: string) => void;
  },
): Promise<Decided | null> {
  const askUntil = async <T>(
    question: string,
    read: (line: string) => T | string | Promise<T | string>,
  ): Promise<T> => {
    for (;;) {
      const found = await read(await ask(question));
      if (typeof found !== 'string') return found;
      note(found);
    }
  };
  if (as === 'answer' && request.form !== undefined) {
    return { as, result: await askFields(request.form, askUntil) };
  }
  if (as === 'answer' && request.url !== undefined) return { as, result: 'done' };
  const more = followUp(as, request);
  if (more === null) return { as };
  return await askUntil(more.question, (line) => {
    const read = more.read(line);
    if (typeof read !== 'string') return read;
    if (more.empty !== undefined) return `${read}. An empty line ${more.empty}.`;
    return line.trim() === '' ? null : `${read}. An empty line leads back to the choices.`;
  });
}

/** Asks for the fields of a form, one after the other. A field that is left empty is not sent. */
async function askFields(
  form: JsonObject,
  askUntil: <T>(
    question: string,
    read: (line: string) => T | string | Promise<T | string>,
  ) => Promise<T>,
): Promise<JsonObject> {
  const { properties, required } = form;
  const lines = formLines(form);
  const fields = isJsonObject(properties) ? Object.entries(properties) : [];
  const content: (readonly [string, Json])[] = [];
  for (const [index, [name, schema]] of fields.entries()) {
    const hasDefault = isJsonObject(schema) && schema['default'] !== undefined;
    const isNeeded = Array.isArray(required) && required.includes(name) && !hasDefault;
    const given = await askUntil(`${visible(lines[index] ?? name)}:`, async (line) => {
      if (line.trim() !== '') return await checkedField(name, schema, line);
      return isNeeded ? 'expected a value: the field is required' : { value: null };
    });
    if (given.value !== null) content.push([name, given.value]);
  }
  return Object.fromEntries(content);
}
