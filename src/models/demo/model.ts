import { setTimeout as delay } from 'node:timers/promises';
import { readYesOrNo } from '../../core/plan/confirm-plan.js';
import { PLAN_REPORT } from '../../core/plan/results.js';
import { CLOSING_INSTRUCTION, parseDocumentKey } from '../../core/rules/documents.js';
import { withoutTail } from '../../core/text/text.js';
import { failureOf } from '../../core/transcript/call-result.js';
import type { PromptMessage } from '../../core/transcript/messages.js';
import {
  type Model,
  ModelError,
  type ModelReply,
  type ModelRequest,
  type ModelTool,
  createEmitter,
  emitReply,
  estimateUsage,
} from '../model.js';
import {
  type DemoMove,
  type NamedCall,
  answer,
  callWith,
  calledIn,
  callsInSequence,
  exampleOf,
  isNamed,
  quotedTexts,
} from './named-calls.js';

/** The part of a prompt that the demo model uses. */
interface DemoConversation {
  /** The last message of a person; empty if there is none. */
  readonly question: string;
  /** The calls made since that message, in order. */
  readonly calls: readonly FinishedCall[];
}

interface FinishedCall {
  readonly tool: string;
  /** False if the tool failed or was not executed; `text` is then the message of the error. */
  readonly ok: boolean;
  readonly text: string;
}

function readConversation(messages: readonly PromptMessage[]): DemoConversation {
  const start = messages.findLastIndex(isQuestion);
  const turn = messages.slice(start + 1);
  const made = turn.flatMap((message) => (message.role === 'assistant' && message.calls) || []);
  const tools = new Map(made.map(({ id, name }) => [id, name]));
  const calls = turn.flatMap((message) => {
    const tool = message.role === 'tool' ? tools.get(message.callId) : undefined;
    if (message.role !== 'tool' || tool === undefined) return [];
    const failure = failureOf(message);
    return [{ tool, ok: failure === null, text: failure?.message ?? message.text }];
  });
  return { question: messages[start]?.text ?? '', calls };
}

/**
 * Whether a message is a question. The closing instruction, retrieved documents, and decisions about
 * requests are also user messages, but ask nothing.
 */
function isQuestion(message: PromptMessage): boolean {
  const { role, text } = message;
  if (role !== 'user' || text.startsWith(PLAN_REPORT) || isDecision(message)) return false;
  return text !== CLOSING_INSTRUCTION && parseDocumentKey(text) === null;
}

/** Whether a message only answers a request, such as `yes`. */
function isDecision({ role, text }: PromptMessage): boolean {
  return role === 'user' && readYesOrNo(text) !== null;
}

interface Terms {
  readonly tools: readonly ModelTool[];
  /** False in the last call of a turn that has reached a limit. */
  readonly mayCall: boolean;
}

const NOT_PERMITTED = 'no further call was permitted.';
const [MAX_NAMES, MAX_LINES] = [30, 12];

/**
 * Decides from the conversation alone, so a run that resumes elsewhere continues the same script.
 */
export function nextMove(conversation: DemoConversation, terms: Terms): DemoMove {
  // The first name counts: later ones may be keys of its arguments.
  const place = ({ name }: ModelTool): number => conversation.question.indexOf(name);
  const sequence = callsInSequence(conversation.question, terms.tools);
  if (sequence.length > 1) return nextInSequence(sequence, conversation, terms);
  const named = terms.tools.filter(({ name }) => isNamed(name, conversation.question));
  const [tool] = named.toSorted((one, other) => place(one) - place(other));
  if (tool !== undefined) return callNamedTool(tool, conversation, terms);
  const known = ownTools(terms.tools).map(({ name }) => name);
  if (known.includes('list_files') && known.includes('read_file')) return tour(conversation, terms);
  if (known.length === 0) return answer('This agent has no tools.');
  return answer(
    `This agent has ${known.length === 1 ? `the tool ${known.join()}. Write its name` : `the tools ${known.join(', ')}. Write the name of one`} in quotes, then its arguments as JSON or in quotes, and I call it.`,
  );
}

/** Makes the calls one after another, and stops at one that failed. */
function nextInSequence(
  sequence: readonly NamedCall[],
  { calls }: DemoConversation,
  { mayCall }: Terms,
): DemoMove {
  const wrong = sequence.find(({ move }) => move.type === 'answer');
  if (wrong !== undefined) return wrong.move;
  const failed = calls.find(({ ok }) => !ok);
  const next = sequence[calls.length];
  if (next !== undefined && failed === undefined && mayCall) return next.move;
  const left = sequence.slice(calls.length).map(({ tool }) => tool);
  const why = failed === undefined ? NOT_PERMITTED : `${failed.tool} failed.`;
  const notMade = left.map((tool) => `${tool} was not called: ${why}`);
  return answer([...calls.map(describe), ...notMade].join('\n'));
}

function tour({ question, calls }: DemoConversation, { mayCall }: Terms): DemoMove {
  const listed = calls.find(({ tool }) => tool === 'list_files');
  if (listed === undefined) {
    if (!mayCall) return answer(`The folder was not listed: ${NOT_PERMITTED}`);
    return { type: 'call', tool: 'list_files', input: { path: '.' } };
  }
  const names = listed.ok ? namesIn(listed) : [];
  const listing = listed.ok ? describeListing(listed, names) : describe(listed);
  const file = namedFile(question, names) ?? names.find((name) => /^readme(\.\w+)?$/i.test(name));
  if (file === undefined) {
    return answer(`${listing}\nThere is no README here; name a file, and I read it.`);
  }
  const read = calls.find(({ tool }) => tool === 'read_file');
  if (read !== undefined) return answer(`${listing}\n${describe(read)}`);
  if (!mayCall) return answer(`${listing}\n${file} was not read: ${NOT_PERMITTED}`);
  return { type: 'call', tool: 'read_file', input: { path: file } };
}

function callNamedTool(
  { name, parameters }: ModelTool,
  { question, calls }: DemoConversation,
  { mayCall }: Terms,
): DemoMove {
  const made = calls.find(({ tool }) => tool === name);
  if (made !== undefined) return answer(describe(made));
  if (!mayCall) return answer(`${name} was not called: ${NOT_PERMITTED}`);
  const words = question.slice(question.indexOf(name) + name.length);
  return callWith({ name, parameters }, words, quotedTexts(question));
}

/** The request to correct a plan. The demo model knows no better value. */
const NOT_ACCEPTED = /^Your answer was not accepted \([^)]*\)\.\n\n(.*?)\n\n/s;

/**
 * Returns a plan as JSON: the calls that the question names, in its order, each with the arguments
 * up to the next name; without such a call, an answer.
 */
function planned({ question }: DemoConversation, tools: readonly ModelTool[]): string {
  const [, problem] = NOT_ACCEPTED.exec(question) ?? [];
  if (problem !== undefined) {
    return JSON.stringify({ actions: [], answer: `The plan was not accepted: ${problem}` });
  }
  const named = tools.filter(({ name }) => isNamed(name, question));
  const found = named
    .flatMap((tool) =>
      [...question.matchAll(calledIn(tool.name))].map(({ index: from, 0: { length } }) => {
        return { tool, from, to: from + length };
      }),
    )
    .toSorted((a, b) => a.from - b.from);
  const moves = found.map(({ tool, to }, index): DemoMove => {
    const words = question.slice(to, found[index + 1]?.from);
    return callWith(tool, words, quotedTexts(words));
  });
  const refused =
    moves.length === 0
      ? nextMove({ question: '', calls: [] }, { tools, mayCall: false })
      : moves.find(({ type }) => type === 'answer');
  const calls = refused === undefined ? moves.filter((move) => move.type === 'call') : [];
  return JSON.stringify({
    actions: calls.map(({ tool, input }, index) => {
      return { id: `a${index + 1}`, tool, arguments: input, after: [] };
    }),
    answer:
      refused?.type === 'answer'
        ? `${refused.text}\n\n${disclosure({ tools, messages: [] })}`
        : null,
  });
}

/** Returns the lines of a report of a plan that say what was done, and what was not. */
function reported(report: string): string {
  const lines = report.split('\n').filter((line) => /^(- |Not done|Planning failed)/.test(line));
  return lines.join('\n');
}

/** Returns the tools without the one that perdure adds for long results. */
function ownTools(tools: readonly ModelTool[]): readonly ModelTool[] {
  return tools.filter(({ name }) => name !== 'read_result');
}

/** Returns the first word that is one of `names` or looks like a path. */
function namedFile(question: string, names: readonly string[]): string | undefined {
  return question
    .split(/[\s"'`,;()<>]+/)
    .map((word) => withoutTail(word, /[.:!?]/))
    .find((word) => names.includes(word) || /^[\w@./-]*(\w\.[A-Za-z]\w*|\/[\w@.-]+)$/.test(word));
}

/**
 * Returns the names in a listing. Folders end with `/`, files with their size in parentheses; notes
 * are in brackets.
 */
function namesIn({ text }: FinishedCall): readonly string[] {
  const [, ...lines] = text.split('\n');
  return lines
    .filter((line) => !line.startsWith('['))
    .map((line) => line.replace(/ \([^()]*\)$/, ''));
}

function describeListing({ tool, text }: FinishedCall, names: readonly string[]): string {
  const returned = `${tool} returned "${text.split('\n', 1).join('')}"`;
  if (names.length === 0) return `${returned}.`;
  const more = names.length > MAX_NAMES ? ', …' : '';
  return `${returned}:\n${names.slice(0, MAX_NAMES).join(', ')}${more}`;
}

/** Returns the first line of a result and a quotation of the following lines, or the error. */
function describe({ tool, ok, text }: FinishedCall): string {
  if (!ok) return `${tool} failed: ${text}`;
  const [head = '', ...rest] = text.split('\n').filter((line) => line.trim() !== '');
  if (rest.length === 0) return `${tool} returned "${head}".`;
  const lines = rest.slice(0, MAX_LINES).map((line) => `> ${line}`);
  const more = rest.length > MAX_LINES ? ['> …'] : [];
  return [`${tool} returned "${head}":`, ...lines, ...more].join('\n');
}

const WROTE = 'The demo model wrote this: a fixed script, not an LLM';

/** Says what wrote the text and, once in a conversation, how to call any tool of the agent. */
function disclosure({ tools, messages }: Pick<ModelRequest, 'tools' | 'messages'>): string {
  const isKnown = messages.some(({ role, text }) => role === 'assistant' && text.includes(WROTE));
  if (isKnown) return `(${WROTE}.)`;
  const all = ownTools(tools);
  const own = all.find(({ name }) => !TOUR.includes(name)) ?? all[0];
  const hasTour = TOUR.every((name) => tools.some((tool) => tool.name === name));
  const does = hasTour
    ? 'It lists the folder and reads one file'
    : 'It calls the tool that you name';
  const call =
    own === undefined ? '' : `; to call a tool, write its name and arguments: ${exampleOf(own)}`;
  return (
    `(${WROTE}. ${does}${call}. ` +
    "For an LLM, set OPENAI_API_KEY, or OPENAI_BASE_URL and PERDURE_MODEL; if the configuration has model: 'demo', " +
    'also name the LLM there.)'
  );
}

const TOUR: readonly string[] = ['list_files', 'read_file'];

interface DemoModelOptions {
  /** Milliseconds before each reply, so a run can be watched or killed midway; default 0. */
  readonly delayMs?: number;
}

/**
 * Creates the model that needs no key. It follows a script: it lists the folder, reads the file
 * that the question names or else the README, and quotes both. If the question names another tool,
 * that tool is called instead, with the JSON object or the quoted values after its name. A plan has
 * the calls that the question names. Equal requests get equal replies.
 *
 * Throws an `Error` if `delayMs` is negative or not finite.
 */
export function demoModel({ delayMs = 0 }: DemoModelOptions = {}): Model {
  if (!Number.isFinite(delayMs) || delayMs < 0) {
    throw new Error(`delayMs: expected 0 or more milliseconds, got ${delayMs}`);
  }
  return {
    async call(request, { signal, onDelta }) {
      await pause(delayMs, signal);
      const reply = createReply(request);
      emitReply(reply, createEmitter(onDelta));
      return reply;
    },
  };
}

function createReply(request: ModelRequest): ModelReply {
  const { tools, toolChoice } = request;
  const conversation = readConversation(request.messages);
  if (request.responseFormat?.name === 'plan') {
    const plan: ModelReply = { text: planned(conversation, tools), calls: [], finish: 'stop' };
    return { ...plan, usage: estimateUsage(request, plan) };
  }
  const last = request.messages.findLast((message) => !isDecision(message));
  const report = last?.text.startsWith(PLAN_REPORT) ? last.text : null;
  const move =
    report !== null
      ? answer(reported(report))
      : nextMove(conversation, { tools, mayCall: toolChoice !== 'none' });
  const reply: ModelReply =
    move.type === 'answer'
      ? { text: `${move.text}\n\n${disclosure(request)}`, calls: [], finish: 'stop' }
      : {
          text: '',
          calls: [{ name: move.tool, arguments: JSON.stringify(move.input) }],
          finish: 'calls',
        };
  return { ...reply, usage: estimateUsage(request, reply) };
}

async function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  try {
    if (delayMs > 0) await delay(delayMs, undefined, { signal });
    signal.throwIfAborted();
  } catch (error) {
    throw new ModelError('The call was aborted.', { kind: 'retry', type: 'aborted', cause: error });
  }
}
