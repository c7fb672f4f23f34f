import { type Json, isObject, isTooDeep, tooDeep, isRecord } from '../text/json.js';
import { jsonText, show } from '../text/text.js';
import { blobShape } from '../transcript/message-shapes.js';
import type { Attachment, BlobRef, ContextRef } from '../transcript/messages.js';
import { fields, json, optional, yes } from '../text/shape.js';

/** The context of one turn: it extends that of the run, or replaces it. */
export interface TurnContext {
  readonly value: Json;
  /** It takes the place of the run's context; absent: it extends it. */
  readonly replace?: true;
}

export const turnContextShape = fields<TurnContext>({ value: json, replace: optional(yes) });

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
  if (replace || !isRecord(context) || !isRecord(value)) return value;
  return { ...context, ...value };
}

/** Maximum attachments per message, because each is part of every later request. */
const MAX_ATTACHMENTS = 20;
const MAX_WORD_CHARACTERS = 2_000;
const EXAMPLES =
  'give {"type": "image", "url": "https://…"} or {"type": "file", "mediaType": "application/pdf", "blob": {"sha256": "…", "bytes": 1}}';

/** Returns what is wrong with the attachments of a message, or null. */
export function checkAttachments(value: unknown): string | null {
  if (value === undefined) return null;
  if (!Array.isArray(value)) {
    return `attachments: expected a list, got ${show(value)}; ${EXAMPLES}`;
  }
  if (value.length === 0 || value.length > MAX_ATTACHMENTS) {
    return `attachments: expected 1–${MAX_ATTACHMENTS}, got ${value.length}; omit the field if there are none`;
  }
  const wrong = value.findIndex((each) => !isAttachment(each));
  if (wrong === -1) return null;
  return `attachments[${wrong}]: expected an attachment, got ${show(value[wrong])}; ${EXAMPLES}`;
}

function isAttachment(value: unknown): value is Attachment {
  if (!isObject(value)) return false;
  const { type, url, blob, mediaType, name, ...rest } = value;
  if (Object.keys(rest).length > 0) return false;
  if (url !== undefined) {
    const alone = blob === undefined && mediaType === undefined && name === undefined;
    return alone && type === 'image' && isWord(url) && /^https?:\/\//.test(url);
  }
  if (type !== 'image' && type !== 'file') return false;
  return isBlob(blob) && isWord(mediaType) && (name === undefined || isWord(name));
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_WORD_CHARACTERS;
}

function isBlob(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { sha256, bytes, ...rest } = value;
  const isHash = typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256);
  return isHash && Number.isInteger(bytes) && Object.keys(rest).length === 0;
}

/**
 * A value sent with a message, which becomes an artifact of the run. The client has stored it for
 * this run.
 */
export interface AttachedArtifact {
  /** 1 to 64 characters of a–z, 0–9, `_`, and `-`. */
  readonly name: string;
  readonly blob: BlobRef;
  /** For the model: `array of 300`, `object with keys …`. */
  readonly kind: string;
  /** The value is text. */
  readonly text?: true;
  /** For the model: the beginning of the value. */
  readonly head: string;
}

export const ARTIFACT_NAME = /^[a-z0-9_-]{1,64}$/;
/** Maximum values per message. Each one is announced to the model. */
export const MAX_ARTIFACTS = 20;
const MAX_KIND_CHARACTERS = 200;
const MAX_HEAD_CHARACTERS = 500;

/** Returns what is wrong with the artifacts of a message, or null. */
export function checkArtifacts(value: unknown): string | null {
  if (value === undefined) return null;
  if (isObject(value)) {
    return 'artifacts: expected values that a client has stored, got values by name; give these to `start` or `send` of a client';
  }
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_ARTIFACTS) {
    const got = Array.isArray(value) ? `${value.length}` : show(value);
    return `artifacts: expected 1–${MAX_ARTIFACTS}, got ${got}; omit the field if there are none`;
  }
  const wrong = value.findIndex((one) => !isAttachedArtifact(one));
  if (wrong >= 0) {
    return `artifacts[${wrong}]: expected a value that the client has stored for this run, got ${show(value[wrong])}`;
  }
  const names = value.filter(isAttachedArtifact).map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined ? null : `artifacts: expected each name once, got "${twice}" twice`;
}

function isAttachedArtifact(value: unknown): value is AttachedArtifact {
  if (!isObject(value)) return false;
  const { name, blob, kind, text, head, ...rest } = value;
  return (
    Object.keys(rest).length === 0 &&
    typeof name === 'string' &&
    ARTIFACT_NAME.test(name) &&
    blobShape(blob, '') === null &&
    isText(kind, MAX_KIND_CHARACTERS) &&
    (text === undefined || text === true) &&
    isText(head, MAX_HEAD_CHARACTERS)
  );
}

function isText(value: unknown, characters: number): boolean {
  return typeof value === 'string' && value.length <= characters;
}

const MAX_BY_CHARACTERS = 200;

/** Returns the problem with a claimed decider's name, or null. */
export function checkBy(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && value !== '' && value.length <= MAX_BY_CHARACTERS) return null;
  return `by: expected a string of 1–${MAX_BY_CHARACTERS} characters, got ${show(value)}`;
}

/** Who acts: a claim, or a name that an interface has verified. */
export interface Actor {
  readonly by?: string | undefined;
  readonly door?: string | undefined;
}

/** Returns the problem with the name of an interface, or null. */
export function checkDoor(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && /^[a-z][a-z-]{0,31}$/.test(value)) return null;
  return `door: expected the name of an interface, such as "http", got ${show(value)}; omit it`;
}

/** Returns what is wrong with who acts, or null. */
export function actorProblem(given: unknown): string | null {
  if (!isObject(given)) return null;
  return checkBy(given['by']) ?? checkDoor(given['door']);
}

/** Returns who acts, with the fields that are there. An interface verifies nothing without a name. */
export function actorOf({ by, door }: Actor): { readonly by?: string; readonly door?: string } {
  if (by === undefined) return {};
  return { by, ...(door !== undefined && { door }) };
}

/** Only a server knows who has proven a name, so what a program says of that does not count. */
export function withoutDoor<Fields extends object>(given: Fields): Fields {
  const copy: Fields & { door?: unknown; groups?: unknown } = { ...given };
  delete copy.door;
  delete copy.groups;
  return copy;
}
