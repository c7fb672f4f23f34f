import { LIMITS } from '../../core/definition/definition.js';
import {
  readPlanAnswer,
  readYesOrNo,
  shownActions,
  someText,
} from '../../core/plan/confirm-plan.js';
import type { PlannedAction } from '../../core/plan/plan.js';
import { formLines } from '../../core/requests/server-ask.js';
import { isYesOrNo, limitWord } from '../../core/requests/commands.js';
import { visible } from '../../core/state/summaries.js';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  isObject,
  parseForeignJson,
} from '../../core/text/json.js';
import { parseDuration } from '../../core/text/text.js';
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

/** What the prompt calls the decisions of an approval. Their own names are taken, too. */
const PLAIN_WORDS: Partial<Record<Choice, string>> = { approve: 'yes', deny: 'no' };

/**
 * Returns the decision that a line makes in plain words: an answer to a plan, yes or no, or one of the
 * answers that a question offers. Null for any other line. A single letter decides nothing.
 */
export function readPlain(line: string, request: Request): Decided | null {
  const text = line.trim();
  if (text.length < 2) return null;
  const { kind, decisions, options = [] } = request;
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
  const answer = readPlanAnswer(text, actions);
  switch (answer?.as) {
    case 'yes':
      return { as: 'approve' };
    case 'no':
      return { as: 'deny' };
    case 'some':
      return { as: 'some', actions: answer.ids };
    case 'edit':
      return { as: 'answer', result: text };
    case undefined:
      return null;
  }
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

/** Returns what to ask before the decision can be sent; null if it is complete. */
export function followUp(as: DecisionKind, request: Request): FollowUp | null {
  switch (as) {
    case 'deny':
    case 'abandon':
      // The server learns that it was declined, and no model reads a reason.
      if (isServerAsk(request)) return null;
      return {
        question: 'Reason (optional):',
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
    read: (line) => {
      const chosen: Pick<Decided, 'actions'> = line.trim() === '' ? {} : chosenActions(line);
      if (actions === null || readPlanAnswer(someText(chosen.actions), actions)?.as === as) {
        return { as, ...chosen };
      }
      const ids = actions.map(({ id }) => id).join(', ');
      return `expected ids with all dependencies; the actions are ${ids}`;
    },
  };
}

/** Whether an MCP server asks, with a form or an address. */
function isServerAsk({ form, url }: Request): boolean {
  return form !== undefined || url !== undefined;
}

/**
 * Returns the value that a line gives a field of a form, or what is wrong with the line. The worker
 * checks it against the whole schema.
 */
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
    const example = now === '' || now.length > EXAMPLE_CHARACTERS ? '' : `; now: ${visible(now)}`;
    return `expected a JSON object with all arguments${example}`;
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
  return `Raise ${limitWord(limit.name)} by${unit}:`;
}

function readRaise(line: string, { limit }: Request): Decided | string {
  const isTime = limit !== undefined && LIMITS[limit.name] === 'time';
  const by = (isTime ? parseDuration(line.trim()) : null) ?? Number(line);
  const fits = line.trim() !== '' && Number.isFinite(by) && by > 0;
  const isAny = limit !== undefined && LIMITS[limit.name] === 'money';
  const whole = isAny || Number.isInteger(by);
  if (limit !== undefined && fits && whole) return { as: 'raise', arguments: { [limit.name]: by } };
  return isTime ? 'expected a duration, such as 10m' : 'expected a positive number';
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
  const askUntil = async <T>(question: string, read: (line: string) => T | string): Promise<T> => {
    for (;;) {
      const found = read(await ask(question));
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
    return typeof read === 'string' && line.trim() === '' ? null : read;
  });
}

/** Asks for the fields of a form, one after the other. A field that is left empty is not sent. */
async function askFields(
  form: JsonObject,
  askUntil: <T>(question: string, read: (line: string) => T | string) => Promise<T>,
): Promise<JsonObject> {
  const { properties, required } = form;
  const lines = formLines(form);
  const fields = isJsonObject(properties) ? Object.entries(properties) : [];
  const content: (readonly [string, Json])[] = [];
  for (const [index, [name, schema]] of fields.entries()) {
    const hasDefault = isJsonObject(schema) && schema['default'] !== undefined;
    const isNeeded = Array.isArray(required) && required.includes(name) && !hasDefault;
    const given = await askUntil(`${visible(lines[index] ?? name)}:`, (line) => {
      if (line.trim() !== '') return readField(schema, line);
      return isNeeded ? 'expected a value: the field is required' : { value: null };
    });
    if (given.value !== null) content.push([name, given.value]);
  }
  return Object.fromEntries(content);
}
