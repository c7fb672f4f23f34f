import type { AgentDefinition, PromptDefinition } from '../definition/definition.js';
import { byteLength, type Ask } from '../inbox.js';
import { settingsMisfit } from '../input/turn-settings.js';
import { checkArgs } from '../input/check-object.js';
import { canonicalJson, isObject, type Json, type JsonObject } from '../json.js';
import { fillText } from '../text/author-texts.js';
import { show } from '../text/format-value.js';
import { objectProblem } from './argument-schema.js';

/** A prompt of the agent that a message names, with its arguments. */
export interface PromptCall {
  readonly prompt: string;
  readonly args?: JsonObject;
}

/** Maximum characters of a prompt's name. */
const MAX_PROMPT_NAME = 64;
/** Maximum bytes of a prompt's text, which the history records like any message. */
const MAX_TEXT_BYTES = 256 * 1024;

type Prompts = Pick<AgentDefinition, 'name' | 'prompts'>;

/** Returns the prompt with this name; undefined if the agent has none. */
export function findPrompt(
  { prompts = {} }: Pick<AgentDefinition, 'prompts'>,
  name: string | undefined,
): PromptDefinition | undefined {
  return name !== undefined && Object.hasOwn(prompts, name) ? prompts[name] : undefined;
}

function promptFormProblem(prompt: unknown): string | null {
  if (prompt === undefined) return null;
  const fits = typeof prompt === 'string' && /^[\w.-]+$/.test(prompt);
  if (fits && prompt.length <= MAX_PROMPT_NAME) return null;
  return `prompt: expected the name of a prompt of the agent, got ${show(prompt)}`;
}

/** Returns what is wrong with a message that names a prompt, or null. `args`: its arguments. */
export function promptMessageProblem(
  { prompt, input, message: text }: Record<string, unknown>,
  args: unknown,
): string | null {
  const problem = promptFormProblem(prompt) ?? checkArgs(args);
  if (problem !== null) return problem;
  if (text !== undefined && text !== '') {
    return 'message: cannot be combined with "prompt"; remove one';
  }
  return input === undefined ? null : 'input: cannot be combined with "prompt"; remove one';
}

/** Returns what is wrong with a run's initial prompt, or null. */
export function startPromptProblem(value: Record<string, unknown>): string | null {
  const { prompt, promptArgs } = value;
  if (prompt !== undefined) return promptMessageProblem(value, promptArgs);
  return promptArgs === undefined ? null : 'promptArgs: expected a prompt; give "prompt" too';
}

/** Returns why this agent cannot accept a message's prompt, settings, or conversation, or null. */
export function misfitProblem(
  definition: AgentDefinition,
  { prompt, args, messages, settings }: Pick<Ask, 'prompt' | 'args' | 'messages' | 'settings'>,
): string | null {
  if (messages !== undefined && definition.graph !== undefined) {
    return `messages: "${definition.name}" is a graph, which takes one message; send "message" or "input"`;
  }
  const refused = settingsMisfit(definition, settings);
  if (refused !== null || prompt === undefined) return refused;
  return promptProblem(definition, { prompt, ...(args && { args }) });
}

/** Returns why an agent has no such prompt, or why the arguments do not fit it; null if they do. */
export function promptProblem(
  definition: Prompts,
  { prompt, args = {} }: PromptCall,
): string | null {
  const found = findPrompt(definition, prompt);
  if (found === undefined) return unknownPrompt(definition, prompt);
  const { args: schema = {} } = found;
  const known = argumentNames(found);
  const unknown = Object.keys(args).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const possible = known.length === 0 ? 'it has none' : `it has ${nearest(unknown, known)}`;
    return `args.${unknown}: expected an argument of prompt "${prompt}" (${possible}); correct the name, or remove it`;
  }
  const misfit = objectProblem(schema, args, 'args');
  if (misfit !== null) return misfit;
  const bytes = byteLength(promptText(definition, { prompt, args }));
  if (bytes <= MAX_TEXT_BYTES) return null;
  return `args: expected a text of at most ${MAX_TEXT_BYTES} bytes, got ${bytes}; put the text into a file and name the file`;
}

/** Returns the names of a prompt's arguments. */
function argumentNames({ args }: Pick<PromptDefinition, 'args'>): readonly string[] {
  return isObject(args?.['properties']) ? Object.keys(args['properties']) : [];
}

/** Returns the text of a message that names a prompt; empty if the agent has no such prompt. */
export function promptText(definition: Prompts, { prompt, args = {} }: PromptCall): string {
  const found = findPrompt(definition, prompt);
  if (found?.args === undefined) return found?.text ?? '';
  const properties = isObject(found.args['properties']) ? found.args['properties'] : {};
  const values = Object.entries(properties).map(([name, schema]): [string, string] => [
    name,
    toText(Object.hasOwn(args, name) ? args[name] : defaultOf(schema)),
  ]);
  return fillText(found.text, Object.fromEntries(values));
}

function defaultOf(schema: unknown): Json | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a schema is JSON
  return isObject(schema) ? (schema['default'] as Json | undefined) : undefined;
}

function toText(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  return value === undefined ? '' : canonicalJson(value);
}

function unknownPrompt({ name, prompts = {} }: Prompts, prompt: string): string {
  const names = Object.keys(prompts);
  const agent = `agent "${name}"`;
  if (names.length === 0) return `prompt: ${agent} has no prompts; send a message instead`;
  return `prompt: expected a prompt of ${agent}, got ${show(prompt)} (nearest: ${nearest(prompt, names)}); correct the name`;
}

/** Returns the names most similar to this one, best match first. */
function nearest(name: string, names: readonly string[]): string {
  return names
    .map((one) => ({ one, edits: editDistance(name.toLowerCase(), one.toLowerCase()) }))
    .toSorted((a, b) => a.edits - b.edits || (a.one < b.one ? -1 : 1))
    .slice(0, 3)
    .map(({ one }) => one)
    .join(', ');
}

/** Returns the number of letters to add, remove, or replace. Both names must be short. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  from.split('').forEach((letter, line) => {
    const next = [line + 1];
    for (let column = 1; column <= to.length; column += 1) {
      const same = letter === to[column - 1] ? 0 : 1;
      const least = Math.min(
        (row[column - 1] ?? 0) + same,
        (row[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
      );
      next.push(least);
    }
    row = next;
  });
  return row[to.length] ?? 0;
}
