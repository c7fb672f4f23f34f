import { isTooDeep, tooDeep } from '../foreign-json.js';
import type { ContextRef } from '../transcript/messages.js';
import { isObject, type Json } from '../json.js';
import { jsonText, show } from '../text/format-value.js';

/** The context of one turn: it extends that of the run, or replaces it. */
export interface TurnContext {
  readonly value: Json;
  readonly replace?: true;
}

/** The context of a run, by value or by reference, and that of the turn under way. */
export interface ContextFields {
  readonly context?: Json;
  readonly contextBlob?: ContextRef;
  readonly turnContext?: TurnContext;
}

/** Maximum characters. Unlike the context of a run, it is sent with each call of its turn. */
const MAX_CHARACTERS = 16_000;

/** Returns what is wrong with the context of a message, or null. */
export function messageContextProblem({
  context,
  contextMode: mode,
}: Readonly<Record<string, unknown>>): string | null {
  if (mode !== undefined && context === undefined) {
    return 'contextMode: expected a context; give "context" too, or omit it';
  }
  if (mode !== undefined && mode !== 'extend' && mode !== 'replace') {
    return `contextMode: expected "extend" or "replace", got ${show(mode)}`;
  }
  if (context === undefined) return null;
  if (isTooDeep(context)) return tooDeep('context');
  const text = jsonText(context);
  if (text === undefined) return 'context: expected JSON; give what JSON.stringify can serialize';
  if (text.length <= MAX_CHARACTERS) return null;
  return (
    `context: expected at most ${MAX_CHARACTERS} characters with a message, got ${text.length}; ` +
    'give the large part when the run starts, or as an artifact'
  );
}

/**
 * Returns a turn's context from those of its messages, oldest first: each extends or replaces the
 * earlier ones. Undefined if no message has one.
 */
export function joinContexts(all: readonly (TurnContext | undefined)[]): TurnContext | undefined {
  return all.reduce((before, next) => {
    if (before === undefined || next === undefined) return next ?? before;
    return next.replace ? next : { ...before, value: withTurnContext(before.value, next) };
  }, undefined);
}

/** Returns why a message's context does not fit with the existing contexts of its turn, or null. */
export function joinedContextProblem(all: readonly (TurnContext | undefined)[]): string | null {
  const length = jsonText(joinContexts(all)?.value)?.length ?? 0;
  if (length <= MAX_CHARACTERS) return null;
  return (
    `context: expected at most ${MAX_CHARACTERS} characters from all messages of the turn, got ${length}; ` +
    'send the message without mode "steer", or with contextMode "replace"'
  );
}

/** Returns what is wrong with the context of a calling agent's turn, or null. */
export function turnContextProblem(value: unknown): string | null {
  if (value === undefined) return null;
  const { value: context, replace, ...rest } = isObject(value) ? value : { value: undefined };
  const fits =
    context !== undefined &&
    (replace === undefined || replace === true) &&
    Object.keys(rest).length === 0 &&
    messageContextProblem({ context }) === null;
  return fits ? null : `turnContext: expected {"value": …}, got ${show(value)}; give \`context\``;
}

/** Returns the context of a message for its turn; nothing if it has none. */
export function turnContextOf({
  context,
  contextMode,
}: {
  readonly context?: Json;
  readonly contextMode?: 'extend' | 'replace';
}): { readonly context?: TurnContext } {
  if (context === undefined) return {};
  const replace = contextMode === 'replace' && { replace: true as const };
  return { context: { value: context, ...replace } };
}

/**
 * Returns the context that the functions of a turn receive: two objects are merged field by field.
 */
export function withTurnContext(context: Json, turn: TurnContext | undefined): Json {
  if (turn === undefined) return context;
  const { value, replace } = turn;
  if (replace || !isJsonObject(context) || !isJsonObject(value)) return value;
  return { ...context, ...value };
}

function isJsonObject(value: Json): value is Extract<Json, { readonly [key: string]: unknown }> {
  return isObject(value);
}
