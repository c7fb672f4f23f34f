import { utf8ToBytes } from '@noble/hashes/utils.js';
import type { AgentDefinition } from '../definition/definition.js';
import type { Actor } from '../input/turn-context.js';
import { type Json, isObject, parseJson } from '../text/json.js';
import { problemText, shorten, printable } from '../text/text.js';
import type { Message, RunArtifact, ToolCall } from '../transcript/messages.js';
import type { Spent } from './turn.js';

const ARGUMENT_CHARACTERS = 60;
const SUMMARY_CHARACTERS = 160;

/**
 * Returns one line for people, such as `read_file src/a.ts`. It is built from the arguments, not
 * from model text.
 */
export function callSummary(call: ToolCall): string {
  return visible(call.summary ?? `${call.name} ${shortArguments(call.arguments)}`.trim());
}

/** The part of a run's state that a step's summary needs. */
interface StepState {
  readonly config: { readonly definition: Pick<AgentDefinition, 'model'> };
  readonly transcript: { readonly messages: readonly Message[] };
  readonly turn: { readonly spent: Pick<Spent, 'steps'> };
}

/**
 * Returns the step and the model's new input in it: `step 4 · after read_file src/a.ts · 3.1 kB`.
 */
export function stepSummary(state: StepState, closing: boolean): string {
  const name = closing ? 'closing call' : `step ${state.turn.spent.steps + 1}`;
  const { messages } = state.transcript;
  const tools = messages.slice(
    messages.findLastIndex((message) => message.role === 'assistant') + 1,
  );
  const results = tools.filter((message) => message.role === 'tool');
  if (results.length === 0) return `${name} · ${state.config.definition.model}`;
  const size = formatBytes(results.reduce((sum, result) => sum + result.text.length, 0));
  return visible(`${name} · after ${afterWhat(messages, results)} · ${size}`);
}

function afterWhat(messages: readonly Message[], results: readonly Message[]): string {
  if (results.length > 1) return `${results.length} calls`;
  const last = messages.findLast((message) => message.role === 'assistant');
  const call = last?.role === 'assistant' ? last.calls?.[0] : undefined;
  return call === undefined ? 'a call' : callSummary(call);
}

/** Returns a size with its unit: B, kB, or MB. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function shortArguments(json: string): string {
  if (json.length > 4_000) return formatBytes(json.length);
  const value = parseJson(json);
  if (!isObject(value)) return '';
  const words = Object.values(value)
    .filter((item) => ['string', 'number', 'boolean'].includes(typeof item))
    .map((item) => shorten(String(item), ARGUMENT_CHARACTERS));
  return words.join(' ');
}

/**
 * Returns a text as one short line for terminals and pages: hidden characters become escapes, line
 * breaks and tabs become spaces.
 */
export function visible(text: string): string {
  // An escape is never shorter than the character.
  const shown = printable(text.slice(0, 2 * SUMMARY_CHARACTERS)).replaceAll(/[\n\t]/g, ' ');
  return shorten(shown, SUMMARY_CHARACTERS);
}

/**
 * Returns a message as one line, like `visible`, but with its end, which may say how to fix the problem.
 */
export function visibleMessage(text: string): string {
  return printable(problemText(listInLine(text))).replaceAll(/[\n\t]/g, ' ');
}

/** Returns a text with a list of problems, such as that of a validation, in one line: `not valid: a; b`. */
export function listInLine(text: string): string {
  return text.replaceAll(':\n- ', ': ').replaceAll('\n- ', '; ');
}

/**
 * Returns why an attempt failed in one short line: the first sentence of its message. That of a node begins
 * with its name, which is shown before it.
 */
export function failureText(message: string): string {
  const [first = ''] = message
    .replace(/^node[ :][^\s:]+: /, '')
    .trim()
    .split(/\n|(?<=[.!?])\s+(?=\p{Lu})/u, 1);
  return visible(first.replace(/[.:]$/, ''));
}

/** Begins a name that a command has taken from the operating system. */
const CLAIM = 'unverified:';

/** Returns who acted, in words, and the interface that has verified it. */
export function actorText({ by, door }: Actor): string {
  if (by === undefined) return 'an unnamed caller';
  if (door !== undefined) return `${visible(by)} (verified by ${visible(door)})`;
  return by.startsWith(CLAIM) ? `${visible(by.slice(CLAIM.length))} (not verified)` : visible(by);
}

/**
 * Returns the refusal of a run in which each name that a command has taken from the operating system, in quotes or
 * as who has decided, is shown as `actorText` shows it.
 */
export function shownPeople(refusal: string): string {
  return refusal
    .replaceAll(/"unverified:((?:[^"\\]|\\.)*)"/g, '"$1" (not verified)')
    .replaceAll(/(\([a-z_]+, by )unverified:([^()]*)\)/g, '$1$2 (not verified))');
}

/**
 * Returns the recorded name of a person that has been shown, such as `os-user:ann` or `os-user:ann (not
 * verified)`: that of one of these people who is shown so, unless one has exactly this name.
 */
export function recordedName(shown: string, people: readonly string[]): string {
  if (people.includes(shown)) return shown;
  const claimed = CLAIM + shown.replace(/ \(not verified\)$/, '');
  return people.includes(claimed) ? claimed : shown;
}

const SHOWN = /^\[screenshot: [^\]\n]*\]\n?/;

/** Returns the text of a screenshot in the transcript. `text`: the tool's own text. */
export function screenshotText(
  { mediaType, bytes }: { readonly mediaType: string; readonly bytes: number },
  text: string,
): string {
  const shown = `[screenshot: ${mediaType}, ${formatBytes(bytes)}]`;
  return text === '' ? shown : `${shown}\n${text}`;
}

/** Returns the tool's own text of a screenshot. */
export function screenshotNote(text: string): string {
  return text.replace(SHOWN, '');
}

/** The maximum number of artifacts in a list for the model. */
const MAX_LISTED = 100;

/**
 * Returns the text that describes a tool's artifact to the model. `wanted` is the name that the
 * tool chose; `head` is the beginning of the value.
 */
export function artifactText(artifact: RunArtifact, wanted: string, head: string): string {
  const { name, kind, blob, summary } = artifact;
  const renamed = name === wanted ? '' : ` ("${wanted}" already names another value)`;
  const whole = utf8ToBytes(head).length >= blob.bytes;
  return [
    `[artifact "${name}"${renamed}: ${kind}, ${blob.bytes} bytes. The whole value is stored: pass ` +
      `it to a tool by this name, or read it with read_result({"ref":"${blob.sha256}","offset":0})]`,
    ...(summary === undefined ? [] : [summary]),
    whole ? 'The value:' : 'The value begins:',
    head,
  ].join('\n');
}

/** Returns the text that announces to the model an artifact of the next message. */
export function attachedArtifactText(
  { name, kind, blob }: Pick<RunArtifact, 'name' | 'kind' | 'blob'>,
  wanted: string,
  head: string,
): string {
  const renamed = name === wanted ? '' : ` ("${wanted}" already names another value)`;
  return [
    `[artifact "${name}"${renamed}: ${kind}. It is sent with the next message, and the whole value is ` +
      `stored: pass it to a tool by this name, or read it with read_result({"ref":"${blob.sha256}","offset":0})]`,
    'The value begins:',
    head,
  ].join('\n');
}

/** Returns the list of a run's artifacts for its model, newest first. */
export function artifactList(artifacts: readonly RunArtifact[]): string {
  if (artifacts.length === 0) return 'There are no artifacts yet.';
  const shown = artifacts.slice(-MAX_LISTED).toReversed();
  const left = artifacts.length - shown.length;
  return [
    `${artifacts.length} artifact${artifacts.length === 1 ? '' : 's'}, newest first:`,
    ...shown.map((artifact) => `- ${line(artifact)}`),
    ...(left === 0 ? [] : [`and ${left} older`]),
  ].join('\n');
}

function line({ name, kind, blob, announcedBy, tool, call, summary }: RunArtifact): string {
  const origin = announcedBy === undefined ? `made by ${tool} (${call})` : 'sent with a message';
  const what = `${name}: ${kind}, ${formatBytes(blob.bytes)}, ${origin}`;
  return summary === undefined ? what : `${what}: ${summary}`;
}

const KEYS = 12;

/** Describes a value in one line, such as `array of 300 objects, the first with keys id, euros`. */
export function describeValue(value: Json): string {
  if (typeof value === 'string') return `text of ${value.length} characters`;
  if (Array.isArray(value)) {
    const [first] = value as readonly Json[];
    const items = isObject(first) ? ` objects, the first with keys ${keysOf(first)}` : '';
    return `array of ${value.length}${items}`;
  }
  if (isObject(value)) {
    const keys = keysOf(value);
    return keys === '' ? 'empty object' : `object with keys ${keys}`;
  }
  return value === null ? 'null' : `${typeof value} ${JSON.stringify(value)}`;
}

function keysOf(value: object): string {
  const keys = Object.keys(value);
  const shown = keys.slice(0, KEYS).map((key) => printableKey(key));
  return keys.length > KEYS
    ? `${shown.join(', ')} and ${keys.length - KEYS} more`
    : shown.join(', ');
}

/**
 * Returns a key in a form that is safe in a line of a list, because keys may contain any
 * characters.
 */
function printableKey(key: string): string {
  return /^[\w.-]+$/u.test(key) ? key : JSON.stringify(key.slice(0, 40));
}
