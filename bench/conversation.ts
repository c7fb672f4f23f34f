import { isObject } from '../src/core/json.js';

/** A conversation as its first message asks for it: every text in it follows from this. */
export interface Script {
  /** Goes into every marker, so that a run's messages are told apart from all others. */
  readonly name: string;
  /** How many steps call tools; one more reply ends the turn. */
  readonly steps: number;
  /** The tools that each step calls, all in one message. */
  readonly tools: readonly string[];
  /** Size of each text, in ASCII characters. */
  readonly bytes: number;
}

/** The arguments of every tool of the bench: all that its result needs. */
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

/** Throws for a text that `openingMessage` did not write. */
export function readScript(text: string): Script {
  const value: unknown = JSON.parse(text);
  if (!isObject(value) || !Array.isArray(value['tools'])) throw new Error(`no script: ${text}`);
  const tools = value['tools'].map(String);
  const { name, steps, bytes } = value;
  return { name: String(name), steps: Number(steps), tools, bytes: Number(bytes) };
}

/** A call's arguments as they come back from the wire. */
export function readArguments(text: string): CallArguments {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) throw new Error(`no arguments: ${text}`);
  const { name, step, part, bytes } = value;
  return { name: String(name), step: Number(step), part: Number(part), bytes: Number(bytes) };
}

/** The model's reply when it has been asked so many times before. */
export function replyOf({ name, steps, tools, bytes }: Script, step: number): ScriptReply {
  const text = filled(replyMarker(name, step), bytes);
  if (step >= steps) return { text, calls: [] };
  const calls = tools.map((tool, part) => ({ tool, arguments: { name, step, part, bytes } }));
  return { text, calls };
}

export function resultOf({ name, step, part, bytes }: CallArguments): string {
  return filled(resultMarker({ name, step, part }), bytes);
}

/** A mark for each message of the whole conversation but the first; each is to be recorded once. */
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
