import { mayAnswer } from '../core/requests/answer-by-message.js';
import type {
  ArgsField,
  PromptName,
  PromptOutput,
  TurnOf,
} from '../core/definition/agent-types.js';
import { InputError } from '../core/errors.js';
import type { Ask } from '../core/input/inbox.js';
import {
  ARTIFACT_NAME,
  type AttachedArtifact,
  checkAttachments,
} from '../core/input/turn-context.js';
import { describeValue } from '../core/state/summaries.js';
import { type Json, isObject } from '../core/text/json.js';
import { detectMediaType, jsonText, show, wellFormed } from '../core/text/text.js';
import type { Attachment } from '../core/transcript/messages.js';
import { type BlobStore, blobsOfRun } from '../storage/blob-store.js';
import {
  NotAttachedError,
  bindAttachments,
  ownedText,
  storeUpload,
} from '../storage/owned-text.js';
import { assertOptionNames } from '../validation/option-names.js';
import type { DeliveredMessage, RecordedMessage, SentMessage } from '../updates/ask.js';

/**
 * What is known about attached bytes, apart from the bytes themselves, which may be at most 20 MiB.
 */
export interface AttachOptions {
  /**
   * The media type, such as `image/png`. Default: detected from the bytes, and refused if that is
   * impossible.
   */
  readonly mediaType?: string;
  /** The file name that the model sees. Default: none. */
  readonly name?: string;
  /**
   * The tenant of the run to which it will be sent. Needed only if that tenant has an encryption
   * key of its own, which then encrypts the bytes from the beginning. Default: none.
   */
  readonly tenant?: string;
}

/**
 * The size limit: attachments are sent to the provider with every request, and no provider accepts
 * larger ones.
 */
export const MAX_ATTACHED_BYTES = 20 * 1024 * 1024;

/**
 * Stores bytes in the blob store, to attach them to a message as an image or a file, depending on
 * their media type. They belong to the run to which they are first sent. Rejects with an
 * `InputError` if they are empty, too large, or of an unknown type, and with a `BlobError`.
 */
export async function attach(
  blobs: BlobStore,
  bytes: Uint8Array,
  options: AttachOptions,
): Promise<Attachment> {
  assertOptionNames<AttachOptions>(
    options,
    { mediaType: true, name: true, tenant: true },
    'attach',
  );
  const { mediaType: given, name, tenant } = options;
  const isBytes: boolean = bytes instanceof Uint8Array;
  if (!isBytes) {
    throw new InputError(`attach: expected bytes as a Uint8Array, got ${show(bytes)}`);
  }
  if (bytes.length === 0 || bytes.length > MAX_ATTACHED_BYTES) {
    throw new InputError(`attach: expected 1 to ${MAX_ATTACHED_BYTES} bytes, got ${bytes.length}`);
  }
  const mediaType = given ?? detectMediaType(bytes);
  if (mediaType === null) {
    throw new InputError(
      'attach: expected bytes of a known type; give `mediaType`, e.g. "text/csv"',
    );
  }
  const own = tenant === undefined ? blobs : blobsOfRun(blobs, `${tenant}/`);
  const blob = await storeUpload(own, Buffer.from(bytes).toString('base64'));
  const type = mediaType.startsWith('image/') ? 'image' : 'file';
  return { type, blob, mediaType, ...(name !== undefined && { name }) };
}

/**
 * Binds the attachments of a message to its run. Returns nothing for malformed attachments, which
 * the run itself reports. Rejects with an `InputError` for an attachment of another run, and with a
 * `BlobError`.
 */
export async function claimAttachments(
  blobs: BlobStore,
  run: string,
  { attachments }: { readonly attachments?: readonly Attachment[] | undefined },
): Promise<{ readonly attachments?: readonly Attachment[] }> {
  if (attachments === undefined || checkAttachments(attachments) !== null) return {};
  try {
    return { attachments: await bindAttachments(blobs, run, attachments) };
  } catch (error) {
    if (!(error instanceof NotAttachedError)) throw error;
    throw new InputError(`attachments: ${error.message}`, { cause: error });
  }
}

/** Values by their names as artifacts of a run. */
export interface ArtifactsField {
  /**
   * Values that become artifacts of the run with the message, by name: 1 to 64 of a–z, 0–9, `_`,
   * and `-`. A value is JSON or a string. It is stored whole; the model reads its name, its shape,
   * and its start. Default: none.
   */
  readonly artifacts?: Readonly<Record<string, unknown>>;
}

/** The maximum size of a value; larger values belong in files that a tool opens. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Characters of the description and of the beginning that the run accepts. */
const MAX_KIND = 200;
const MAX_HEAD = 500;

/**
 * Stores the artifacts of a message for its run. Rejects with an `InputError` that names the
 * artifact if a name is invalid or a value cannot be stored, and with a `BlobError`.
 */
export async function storeArtifacts(
  blobs: BlobStore,
  run: string,
  { artifacts }: { readonly artifacts: ArtifactsField['artifacts'] | undefined },
): Promise<{ readonly artifacts?: readonly AttachedArtifact[] }> {
  if (artifacts === undefined) return {};
  if (!isObject(artifacts)) {
    throw new InputError(
      `artifacts: expected values by name, got ${show(artifacts)}; give for example { orders: [...] }`,
    );
  }
  const stored = Object.entries(artifacts).map(([name, value]) =>
    storeArtifact(blobs, run, { name, value }),
  );
  return { artifacts: await Promise.all(stored) };
}

async function storeArtifact(
  blobs: BlobStore,
  run: string,
  { name, value }: { readonly name: string; readonly value: unknown },
): Promise<AttachedArtifact> {
  if (!ARTIFACT_NAME.test(name)) {
    throw new InputError(
      `artifacts: expected names of 1 to 64 of a–z, 0–9, "_", and "-", got ${show(name)}`,
    );
  }
  const at = `artifacts.${name}`;
  const isText = typeof value === 'string';
  const json = isText ? value : jsonText(value);
  if (json === undefined || !(isText || isJson(value))) {
    throw new InputError(
      `${at}: expected a text or JSON, got ${show(value)}; convert what JSON does not have, such as dates, maps, and undefined`,
    );
  }
  const content = wellFormed(json);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked above
  const kind = wellFormed(describeValue(value as Json).slice(0, MAX_KIND));
  const head = wellFormed(content.slice(0, MAX_HEAD));
  const bytes = Buffer.byteLength(content);
  if (bytes > MAX_BYTES) {
    throw new InputError(
      `${at}: expected at most ${MAX_BYTES} bytes, got ${bytes}; write it to a file, and name the file`,
    );
  }
  const blob = await blobsOfRun(blobs, run).put(ownedText('artifact', run, content));
  return { name, blob, kind, head, ...(isText && { text: true as const }) };
}

/** Whether JSON represents a serializable value completely. */
function isJson(value: unknown): boolean {
  if (Array.isArray(value)) return Array.from(value).every(isJson);
  if (typeof value === 'number') return Number.isFinite(value);
  if (!isObject(value)) return ['string', 'boolean'].includes(typeof value) || value === null;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    (prototype === null || prototype === Object.prototype) && Object.values(value).every(isJson)
  );
}

/** A message with the values of its artifacts, which the client stores for the run. */
export type MessageInput = Omit<Ask, 'artifacts' | 'door'> & ArtifactsField;

/** A message that is a named prompt of the agent, with its arguments. */
export type NamedPromptMessage<Prompts, Name extends PromptName<Prompts>> = Omit<
  MessageInput,
  'message' | 'messages' | 'input' | 'prompt' | 'args'
> & { readonly prompt: Name } & ArgsField<Prompts, Name>;

/** What `send` sends: a text, a message, or a named prompt. */
export type OutgoingMessage<Prompts, Name extends PromptName<Prompts>> =
  | string
  | (unknown extends Prompts
      ? MessageInput
      : MessageInput & { readonly prompt?: never; readonly args?: never })
  | NamedPromptMessage<Prompts, Name>;

/** A message that was sent. For a named prompt, the turn number carries the type of the output. */
export type SentPrompt<Prompts, Name> = [Name] extends [never]
  ? SentMessage
  : (DeliveredMessage & { readonly turn: TurnOf<PromptOutput<Prompts, Name>> }) | RecordedMessage;

/**
 * Returns what a message may decide, and when it was sent if that matters. Throws an `InputError`
 * if it would decide for a client whose messages do not.
 */
export function answersOf(
  { answers, message = '' }: Pick<MessageInput, 'answers' | 'message'>,
  isMute: boolean,
): Pick<Ask, 'answers' | 'sentAt'> {
  if (isMute) {
    if (answers === undefined || answers === false) return { answers: false };
    throw new InputError(
      'answers: expected none, because this client was created with answers: false; decide with `resolve`',
    );
  }
  const isBound = answers === false || typeof answers === 'object';
  return isBound || !mayAnswer(message) ? {} : { sentAt: Date.now() };
}
