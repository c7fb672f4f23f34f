import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { RetrieveContext, RetrieveQuery, Retriever } from '../agents/agent-parts.js';
import {
  type RetrievedDocument,
  documentKey,
  documentText,
  parseDocumentKey,
} from '../core/rules/documents.js';
import type { RetrieveResult } from '../core/run/contract.js';
import type { Places, RetrieveInput } from '../core/state/turn.js';
import { isObject } from '../core/text/json.js';
import { formatDuration, wellFormed } from '../core/text/text.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import { chain, toPromptMessage } from '../core/transcript/transcript.js';
import { redact } from '../secrets/redact.js';
import type { BlobStore } from '../storage/blob-store.js';
import { headBytes, normalizeError } from '../tools/result/plain.js';
import type { ActivityDependencies } from './activity-context.js';
import {
  THIS_WORKER,
  blockedToolFailure,
  createLog,
  problemFailure,
  runBoundedOrThrow,
  toRunIds,
  withHeartbeat,
} from './attempt.js';
import { offloadText } from './fork-messages.js';
import { type Prompt, rebuildPrompt } from './prompt.js';
import {
  checkWritable,
  trackStore,
  unstoredFailure,
  withStorageMapping,
} from './storage-faults.js';

/** Maximum documents in one turn. */
const MAX_DOCUMENTS = 50;
/** Maximum bytes in UTF-8 of a document. A larger one is cut like a tool's result. */
const DOCUMENT_BYTES = 64 * 1024;
/** Maximum bytes of all texts of a turn. JSON at most doubles them, so no event exceeds 256 KiB. */
const ROOM_BYTES = 96 * 1024;
/** Maximum bytes of names, which are recorded both in the text and separately. */
const ID_BYTES = 100;
const SOURCE_BYTES = 250;
/**
 * The size of one special character after it is escaped for the text, and again for the history.
 */
const ESCAPED_BYTES = 8;

interface FoundDocument {
  readonly text: string;
  readonly id?: string;
  readonly source?: string;
  readonly key: string;
}

/**
 * Returns the documents that `retrieve` returned, in its order and without duplicates and documents
 * that are already in the prompt. Throws an error that names the wrong value if it returned
 * something else.
 */
export function selectDocuments(
  returned: unknown,
  prompt: readonly PromptMessage[],
): readonly FoundDocument[] {
  if (!Array.isArray(returned)) {
    throw new Error(
      `expected an array of strings or { text, id?, source? }, got ${describeKind(returned)}`,
    );
  }
  const known = new Set(
    prompt.map(({ role, text }) => (role === 'user' ? parseDocumentKey(text) : null)),
  );
  const seen = new Set<string>();
  const found: FoundDocument[] = [];
  for (const [index, each] of returned.entries()) {
    const document = readDocument(each, index);
    const same = document.id === undefined ? `text ${document.text}` : `id ${document.id}`;
    const key = documentKey(document);
    if (document.text.trim() === '' || seen.has(same)) continue;
    // Only the first document with an id counts, even if it is already in the prompt.
    seen.add(same);
    if (!known.has(key)) found.push({ ...document, key });
    if (found.length === MAX_DOCUMENTS) break;
  }
  return found;
}

/**
 * Returns the documents as the history records them: cut to the limit of a turn, with the larger
 * ones in the blob store. `readable` means that the model has a tool to read the rest.
 */
export async function recordDocuments(
  found: readonly FoundDocument[],
  { blobs, readable }: { readonly blobs: BlobStore; readonly readable: boolean },
): Promise<readonly RetrievedDocument[]> {
  const share = fairShare(
    found.map(({ text }) => Buffer.byteLength(text)),
    ROOM_BYTES,
  );
  const maxBytes = Math.min(share, DOCUMENT_BYTES);
  return await Promise.all(
    found.map(async ({ text: whole, key, id, source }) => {
      const { text: shown, blob } = await offloadText(whole, blobs, { maxBytes, readable });
      const named = {
        ...(id !== undefined && { id: cutName(id, ID_BYTES) }),
        ...(source !== undefined && { source: cutName(source, SOURCE_BYTES) }),
      };
      return { text: documentText(key, { shown, ...named }), ...(blob && { blob }), ...named };
    }),
  );
}

function readDocument(value: unknown, index: number): Omit<FoundDocument, 'key'> {
  const { text, id, source } = isObject(value) ? value : { text: value };
  if (typeof text !== 'string') {
    throw new Error(`document ${index}: expected a string as text, got ${describeKind(text)}`);
  }
  const wrong = [id, source].find((name) => name !== undefined && typeof name !== 'string');
  if (wrong !== undefined) {
    throw new Error(
      `document ${index}: expected a string as id and source, got ${describeKind(wrong)}`,
    );
  }
  return {
    text: clean(text),
    ...(typeof id === 'string' && id !== '' && { id: clean(id) }),
    ...(typeof source === 'string' && source !== '' && { source: clean(source) }),
  };
}

/**
 * Removes secrets, and replaces control characters, each of which takes six bytes in the history.
 */
function clean(text: string): string {
  const safe = wellFormed(redact(text));
  // oxlint-disable-next-line no-control-regex -- control characters are the point
  return safe.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '\ufffd');
}

/** Cuts a name. One with many special characters is cut further, so its escaped form also fits. */
function cutName(text: string, bytes: number): string {
  const head = headBytes(text, bytes);
  const special = head.match(/["\\<>\u007f-\u009f\u2028\u2029]/g) ?? [];
  return special.length * ESCAPED_BYTES <= bytes ? head : headBytes(head, bytes / ESCAPED_BYTES);
}

function describeKind(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return 'a string';
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}

/**
 * Returns the largest size that each text may have so that all fit; small texts leave room for
 * large ones.
 */
function fairShare(sizes: readonly number[], room: number): number {
  const sorted = sizes.toSorted((one, other) => one - other);
  let left = room;
  for (const [index, size] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index));
    if (size > share) return share;
    left -= size;
  }
  return Infinity;
}

/** The number of failed attempts after which a turn fails or is not remembered. */
export const TURN_FUNCTION_ATTEMPTS = 3;

/** Returns the messages at these places of a prompt. */
export function messagesAt(
  messages: readonly PromptMessage[],
  places: Places,
): readonly PromptMessage[] {
  return places.flatMap(([from, to]) => messages.slice(from, to));
}

interface TurnFunction {
  readonly name: 'retrieve' | 'remember';
  readonly prompt: Pick<Prompt, 'pinned' | 'userContext'>;
  readonly turn: number;
  /** The default of this worker; the run's pinned value takes precedence. */
  readonly timeoutMs: number;
}

/**
 * Calls an agent's function for each turn, subject to its time limit and the activity's
 * cancellation.
 */
export async function callTurnFunction<T>(
  context: Context,
  { name, prompt, turn, timeoutMs: ownMs }: TurnFunction,
  call: (given: RetrieveContext) => T | Promise<T>,
): Promise<T> {
  const { pinned, userContext } = prompt;
  const timeoutMs = pinned.definition[name]?.timeoutMs ?? ownMs;
  const given = {
    context: userContext,
    run: { ...toRunIds(context.info), turn },
    log: createLog(context),
  };
  return await runBoundedOrThrow(async (signal) => await call({ ...given, signal }), {
    name: `${name} of agent "${pinned.definition.name}"`,
    timeoutMs,
    cancelled: context.cancellationSignal,
    timeoutError: () => new Error(`timed out after ${formatDuration(timeoutMs, { as: 'exact' })}`),
  });
}

/** The tool that reads the rest of a document. */
const READ_ON = 'read_result';

/**
 * Calls the agent's `retrieve` for the documents of a turn. The input specifies the prompt by its
 * digest.
 */
export async function retrieveDocuments(
  deps: ActivityDependencies,
  input: RetrieveInput,
): Promise<RetrieveResult> {
  const context = Context.current();
  return await withHeartbeat(context, async () => {
    if (input.blocked === 'storage') await checkWritable(deps.blobs, 'storage');
    const prompt = await withStorageMapping(input, () => rebuildPrompt(deps, context, input));
    const { definition } = prompt.pinned;
    const retriever = findRetriever(context, prompt, input);
    const found = await withFailureMapping(context, definition.name, async () => {
      const { turn, own } = input;
      const { find, timeoutMs } = retriever;
      const called = { name: 'retrieve', prompt, turn, timeoutMs } as const;
      const query = createQuery(prompt.messages, own);
      const returned = await callTurnFunction(context, called, (given) => find(query, given));
      return selectDocuments(returned, prompt.messages);
    });
    const readable = definition.tools.some((tool) => tool.name === READ_ON);
    const store = trackStore(deps.blobs);
    const documents = await recordDocuments(found, { blobs: store.blobs, readable });
    const failure = unstoredFailure('a retrieved document', store, input);
    if (failure !== null) throw failure;
    cacheDocuments(deps, prompt, documents);
    return { documents };
  });
}

/**
 * Returns the agent's retriever. Throws the failure that blocks the run if this worker has none.
 */
function findRetriever(
  context: Context,
  { pinned: { agent, definition } }: Prompt,
  input: RetrieveInput,
): Retriever {
  if (agent?.retrieve) return agent.retrieve;
  const message = `agent "${definition.name}" has no retrieve function on ${THIS_WORKER}; deploy it again, or cancel the run`;
  throw blockedToolFailure(context, input, { reason: 'tool_missing', message });
}

function createQuery(messages: readonly PromptMessage[], own: Places): RetrieveQuery {
  const query = messagesAt(messages, own)
    .map(({ text }) => text)
    .join('\n\n');
  // The function gets a copy, because it may change the messages.
  return { query, messages: structuredClone(messages), limit: MAX_DOCUMENTS };
}

/**
 * Maps failures: Temporal retries the first ones, and the last one carries the problem to the
 * workflow.
 */
async function withFailureMapping<T>(
  { cancellationSignal, info, log }: Context,
  agent: string,
  find: () => Promise<T>,
): Promise<T> {
  try {
    return await find();
  } catch (thrown) {
    cancellationSignal.throwIfAborted();
    const { attempt } = info;
    const message = `retrieve of agent "${agent}": ${normalizeError(thrown).message}`;
    log.warn('retrieve failed', { attempt, message });
    const type = 'RetrieveFailed';
    if (attempt < TURN_FUNCTION_ATTEMPTS) throw ApplicationFailure.create({ type, message });
    throw problemFailure({ type: 'failed', reason: 'error', message }, { type });
  }
}

/** Adds the messages that the workflow will append to this worker's transcript cache. */
function cacheDocuments(
  { transcripts }: ActivityDependencies,
  { name: { run, upTo, head } }: Prompt,
  documents: readonly RetrievedDocument[],
): void {
  let link = head;
  for (const [index, { text }] of documents.entries()) {
    const message = toPromptMessage({ role: 'user', text });
    transcripts.noteReply({ run, upTo: upTo + index, head: link }, message);
    link = chain(link, message);
  }
}
