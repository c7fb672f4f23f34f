import { isObject } from '../src/core/text/json.js';

/** The conversation that its first message specifies: every text in it is derived from this. */
export interface Script {
  /** Part of every marker, so that the messages of one run differ from those of all others. */
  readonly name: string;
  /** The number of steps that call tools; one more reply ends the turn. */
  readonly steps: number;
  /** The number of calls in each step, all in one message. */
  readonly tools: readonly string[];
  /** Size of each text, in ASCII characters. */
  readonly bytes: number;
}

/** The arguments of every tool of the bench: everything that its result depends on. */
export interface CallArguments {
  readonly name: string;
  readonly step: number;
  readonly part: number;
  readonly bytes: number;
}

export interface ScriptReply {
  readonly text: string;
  readonly calls: readonly { readonly tool: string; readonly arguments: CallArguments }[];
}

export function openingMessage(script: Script): string {
  return JSON.stringify(script);
}

/** Throws if `openingMessage` did not write the text. */
export function readScript(text: string): Script {
  const value: unknown = JSON.parse(text);
  if (!isObject(value) || !Array.isArray(value['tools'])) throw new Error(`no script: ${text}`);
  const tools = value['tools'].map(String);
  const { name, steps, bytes } = value;
  return { name: String(name), steps: Number(steps), tools, bytes: Number(bytes) };
}

/** A call's arguments as they are parsed from the wire. */
export function readArguments(text: string): CallArguments {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) throw new Error(`no arguments: ${text}`);
  const { name, step, part, bytes } = value;
  return { name: String(name), step: Number(step), part: Number(part), bytes: Number(bytes) };
}

/** The model's reply after it has been called this many times. */
export function replyOf({ name, steps, tools, bytes }: Script, step: number): ScriptReply {
  const text = filled(replyMarker(name, step), bytes);
  if (step >= steps) return { text, calls: [] };
  const calls = tools.map((tool, part) => ({ tool, arguments: { name, step, part, bytes } }));
  return { text, calls };
}

export function resultOf({ name, step, part, bytes }: CallArguments): string {
  return filled(resultMarker({ name, step, part }), bytes);
}

/**
 * One marker for each message of the conversation except the first; each must be recorded exactly
 * once.
 */
export function markersOf(script: Script): readonly string[] {
  return Array.from({ length: script.steps + 1 }, (_, step) => [
    replyMarker(script.name, step),
    ...replyOf(script, step).calls.map((call) => resultMarker(call.arguments)),
  ]).flat();
}

function replyMarker(name: string, step: number): string {
  return `<${name} reply ${step}>`;
}

function resultMarker({ name, step, part }: Omit<CallArguments, 'bytes'>): string {
  return `<${name} result ${step}.${part}>`;
}

function filled(marker: string, bytes: number): string {
  return marker.padEnd(bytes, ' lorem ipsum dolor sit amet');
}
