import {
  WorkflowNotFoundError,
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowExecutionInfo,
  type WorkflowHandle,
} from '@temporalio/client';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { UnreadableError } from '../core/errors.js';
import { isObject, textField } from '../core/text/json.js';
import { visible } from '../core/state/summaries.js';
import { GRPC, grpcCode } from './grpc.js';
import {
  decodeMapFromPayloads,
  decodePayloads,
  executionInfoFromRaw,
  extstoreInboundOptions,
  visit,
  walkDescribeWorkflowExecutionResponse,
  walkGetWorkflowExecutionHistoryResponse as walkHistory,
  walkListSchedulesResponse,
  walkListWorkflowExecutionsResponse,
} from './sdk-internals.js';

/*
 * The only place that reads payloads in raw answers of the server. A client may have codecs, for example
 * for encryption, and an external storage. The SDK applies them to what its own methods return, but not
 * to histories and descriptions, and one memo that it cannot decode makes it reject a whole list.
 */

/** The history of one segment. */
export type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
type RawHistoryEvent = NonNullable<History['events']>[number];
type HistoryRequest = Parameters<Client['workflowService']['getWorkflowExecutionHistory']>[0];
type RawInfo = Parameters<typeof executionInfoFromRaw>[0];
type WalkOf<T> = <Context>(
  ...given: Parameters<Parameters<typeof visit<T, Context>>[1]>
) => Promise<unknown>[];

/** The encodings of Temporal's default converter, including those that perdure does not read. */
const PLAIN = new Set([
  'binary/null',
  'binary/plain',
  'json/plain',
  'json/protobuf',
  'binary/protobuf',
]);
/** The encoding of an encrypted payload, also in the examples of Temporal. */
export const ENCRYPTED = 'binary/encrypted';
/** The metadata in which codecs name the key of an encrypted payload. */
export const KEY_ID = 'encryption-key-id';
const FIX =
  'give the key in PERDURE_ENCRYPTION_KEYS or `encryption` of the configuration, or use a client with the payload codec of the worker that wrote it';

/** Part of a history. */
export interface HistoryPage {
  readonly events: readonly RawHistoryEvent[];
  /** Undefined after the last page of a segment that has ended. */
  readonly token: Uint8Array | undefined;
}

/**
 * Reads one page of a history, decoded. Rejects with an `UnreadableError` if a payload cannot be
 * decoded.
 */
export async function readHistoryPage(
  client: Client,
  request: Omit<HistoryRequest, 'namespace'>,
): Promise<HistoryPage> {
  const { namespace } = client.options;
  const page = await client.workflowService.getWorkflowExecutionHistory({ ...request, namespace });
  const id = request.execution?.workflowId ?? '';
  if (page.history) await decodeHistory(client, id, page.history);
  const { nextPageToken: token } = page;
  return {
    events: page.history?.events ?? [],
    token: token && token.length > 0 ? token : undefined,
  };
}

/**
 * Reads the whole history of a segment, decoded; the newest segment by default. Rejects with a
 * `WorkflowNotFoundError`, and with an `UnreadableError` if a payload cannot be decoded.
 */
export async function fetchHistory(client: Client, id: string, runId?: string): Promise<History> {
  const handle = client.workflow.getHandle(id, runId);
  const history = await handle.fetchHistory().catch((error: unknown) => {
    // This method of the SDK passes on what the server says.
    if (grpcCode(error) !== GRPC.notFound) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw Object.assign(new WorkflowNotFoundError(message, id, runId), { cause: error });
  });
  return await decodeHistory(client, id, history);
}

/**
 * Decodes a history in place, with the client's codecs and external storage; returns it. A history
 * that is decoded already does not change. Rejects with an `UnreadableError`.
 */
export async function decodeHistory(
  client: Client,
  id: string,
  history: History,
): Promise<History> {
  try {
    await decodeIn(client, { root: { history }, walk: walkHistory, id });
    // A run whose input is encoded is encoded throughout.
    const [started] = history.events ?? [];
    started?.workflowExecutionStartedEventAttributes?.input?.payloads?.forEach(payloadValue);
  } catch (error) {
    const what = `the history of run "${visible(id)}" cannot be read`;
    const why = messageOf(error);
    const fix = UnreadableError.isInstance(error) ? '' : `; ${FIX}`;
    throw new UnreadableError(`${what}: ${why}${fix}`, { cause: error });
  }
  return history;
}

/** A description of a workflow. */
export interface Description extends WorkflowExecutionDescription {
  /** Why `memo` is undefined, although the workflow has one; null if it could be decoded. */
  readonly unreadable: string | null;
}

/**
 * Describes a workflow; the newest segment by default. A memo that cannot be decoded is left out.
 * Rejects with a `WorkflowNotFoundError`.
 */
export async function describeWorkflow(
  client: Client,
  id: string,
  runId?: string,
): Promise<Description> {
  const handle = client.workflow.getHandle(id, runId);
  try {
    const described = await handle.describe();
    await decodeIn(client, {
      root: described.raw,
      walk: walkDescribeWorkflowExecutionResponse,
      id,
    }).catch(() => undefined);
    return { ...described, unreadable: null };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError || grpcCode(error) !== null) throw error;
    const raw = await client.workflowService.describeWorkflowExecution({
      namespace: client.options.namespace,
      execution: { workflowId: id, runId: runId ?? null },
    });
    if (!raw.workflowExecutionInfo) throw error;
    const { info, unreadable } = await readInfo(client, raw.workflowExecutionInfo);
    return { ...info, raw, staticDetails: noText, staticSummary: noText, unreadable };
  }
}

/** The texts of a description whose payloads cannot be decoded. */
async function noText(): Promise<undefined> {
  return undefined;
}

/** A workflow in a list. */
export interface ListedWorkflow {
  readonly info: WorkflowExecutionInfo;
  /** Why `info.memo` is undefined, although the workflow has one; null if it could be decoded. */
  readonly unreadable: string | null;
}

/**
 * Yields the workflows that a visibility query finds. A memo that cannot be decoded is left out.
 * Rejects if the server refuses the query.
 */
export async function* listWorkflows(
  client: Client,
  query: string,
): AsyncGenerator<ListedWorkflow, void, undefined> {
  let nextPageToken: Uint8Array = Buffer.alloc(0);
  do {
    const request = { namespace: client.options.namespace, query, nextPageToken };
    const page = await client.workflowService.listWorkflowExecutions(request);
    for (const raw of page.executions) yield await readInfo(client, raw);
    ({ nextPageToken } = page);
  } while (nextPageToken.length > 0);
}

/** Reads an entry of a raw list of workflows. Never rejects because of its memo. */
export async function readInfo(client: Client, raw: RawInfo): Promise<ListedWorkflow> {
  const { namespace, loadedDataConverter: converter } = client.options;
  try {
    const { externalStorage } = converter;
    if (externalStorage !== undefined) {
      const list = { executions: [raw] };
      const options = extstoreInboundOptions(externalStorage);
      await visit(list, walkListWorkflowExecutionsResponse, options);
    }
    return { info: await executionInfoFromRaw(raw, converter, raw, namespace), unreadable: null };
  } catch (error) {
    const unreadable = unreadableMemo(raw.memo?.fields, error);
    // A copy would lack what a message of protobuf inherits.
    const without = Object.assign(raw, { memo: null });
    const info = await executionInfoFromRaw(without, converter, without, namespace);
    return { info, unreadable };
  }
}

/** A schedule in a list. */
export interface ListedSchedule {
  readonly id: string;
  /** The names of the fields of its memo. */
  readonly fields: readonly string[];
  /** Null if it cannot be decoded. */
  readonly memo: Readonly<Record<string, unknown>> | null;
  /** Why the memo is null; null if it could be decoded. */
  readonly unreadable: string | null;
  readonly paused: boolean;
  /** Empty if there is none. */
  readonly note: string;
}

/** Yields the schedules of the namespace. A memo that cannot be decoded is left out. */
export async function* listSchedules(
  client: Client,
): AsyncGenerator<ListedSchedule, void, undefined> {
  const { namespace, loadedDataConverter: converter } = client.options;
  let nextPageToken: Uint8Array = Buffer.alloc(0);
  do {
    const page = await client.workflowService.listSchedules({ namespace, nextPageToken });
    for (const schedule of page.schedules) {
      const fields = schedule.memo?.fields ?? {};
      const row = {
        id: schedule.scheduleId ?? '',
        fields: Object.keys(fields),
        paused: schedule.info?.paused === true,
        note: schedule.info?.notes ?? '',
      };
      try {
        const { externalStorage } = converter;
        if (externalStorage !== undefined) {
          const options = extstoreInboundOptions(externalStorage);
          await visit({ schedules: [schedule] }, walkListSchedulesResponse, options);
        }
        const memo = (await decodeMapFromPayloads(converter, schedule.memo?.fields)) ?? {};
        yield { ...row, memo, unreadable: null };
      } catch (error) {
        yield { ...row, memo: null, unreadable: unreadableMemo(fields, error) };
      }
    }
    ({ nextPageToken } = page);
  } while (nextPageToken.length > 0);
}

/**
 * Returns the value of a payload that the client's codecs have decoded. Null if there is no payload,
 * and for a value that the workflow itself could not read either. Throws an `UnreadableError` for a
 * payload that is still encoded.
 */
export function payloadValue(payload: Payload | null | undefined): unknown {
  if (!payload) return null;
  try {
    return defaultPayloadConverter.fromPayload(payload);
  } catch (error) {
    const encoded = encodingsIn([payload]);
    if (encoded === '') return null;
    throw new UnreadableError(`a payload is encoded as ${encoded}; ${FIX}`, { cause: error });
  }
}

/**
 * Returns how payloads of a history are still encoded, such as `"binary/encrypted" (key "k1")`; empty
 * if Temporal's default converter can read all of them.
 */
export async function encodingOf(history: History): Promise<string> {
  const encoded = (await payloadsIn(history)).map((payload) => encodingsIn([payload]));
  return [...new Set(encoded.filter((one) => one !== ''))].join(', ');
}

/**
 * Returns the payloads of a decoded history as texts, without headers. Throws an `UnreadableError` if
 * one is still encoded.
 */
export async function payloadTexts(history: History): Promise<readonly string[]> {
  return textsOf(await payloadsIn(history));
}

/**
 * Returns the heartbeats of the activities that a workflow waits for, as texts. Throws an
 * `UnreadableError` if one is still encoded.
 */
export function heartbeatTexts({ raw }: Pick<Description, 'raw'>): readonly string[] {
  const activities = raw.pendingActivities ?? [];
  return textsOf(activities.flatMap((one) => one.heartbeatDetails?.payloads ?? []));
}

function textsOf(payloads: readonly Payload[]): readonly string[] {
  const encoded = encodingsIn(payloads);
  if (encoded !== '') throw new UnreadableError(`a payload is encoded as ${encoded}; ${FIX}`);
  return payloads.map(({ data }) => textIn(data));
}

async function payloadsIn(history: History): Promise<readonly Payload[]> {
  const found: Payload[] = [];
  await visit({ history }, walkHistory, {
    transformPayload: async (payload) => {
      found.push(payload);
      return payload;
    },
    transformPayloads: async (payloads) => {
      found.push(...payloads);
      return payloads;
    },
    skipHeaders: true,
    skipSearchAttributes: true,
  });
  return found;
}

interface Decodable<T> {
  readonly root: T;
  readonly walk: WalkOf<T>;
  /** The id of the workflow. */
  readonly id: string;
}

/** Replaces all payloads in an answer by decoded ones. */
async function decodeIn<T extends object>(
  { options: { namespace, loadedDataConverter } }: Client,
  { root, walk, id }: Decodable<T>,
): Promise<void> {
  const { payloadCodecs: codecs, externalStorage } = loadedDataConverter;
  if (externalStorage !== undefined) {
    await visit(root, walk, extstoreInboundOptions(externalStorage));
  }
  if (codecs.length === 0) return;
  const context = { type: 'workflow', namespace, workflowId: id } as const;
  const failures: object[] = [];
  const ofCore = new WeakSet();
  // A payload that the SDK's core has written has no context.
  await visit<T, typeof context | null>(root, walk, {
    transformPayload: async (payload, of) =>
      of === null ? payload : ((await decodePayloads(codecs, [payload], of))[0] ?? payload),
    transformPayloads: async (payloads, of) =>
      of === null ? payloads : await decodePayloads(codecs, payloads, of),
    skipHeaders: true,
    skipSearchAttributes: true,
    initialContext: context,
    deriveContext(message, type, of) {
      if (type.endsWith('failure.v1.Failure')) failures.push(message);
      if (type.endsWith('history.v1.HistoryEvent')) {
        for (const payloads of payloadsOfCore(message)) ofCore.add(payloads);
      }
      return ofCore.has(message) ? null : of;
    },
  });
  failures.forEach(restoreMessage);
}

/** Returns what the SDK's core writes into markers of patches and local activities, past every codec. */
function payloadsOfCore({ markerRecordedEventAttributes: marker }: RawHistoryEvent): object[] {
  if (marker?.markerName?.startsWith('core_') !== true) return [];
  const details = Object.entries(marker.details ?? {});
  return details.flatMap(([name, payloads]) => (name === 'result' ? [] : [payloads]));
}

/** Puts the message of a failure back where a failure converter has replaced it by a payload. */
function restoreMessage(failure: object): void {
  if (!isObject(failure) || !failure['encodedAttributes']) return;
  const attributes = payloadValue(failure['encodedAttributes']);
  if (!isObject(attributes)) return;
  Object.assign(failure, {
    message: textField(attributes, 'message'),
    stackTrace: textField(attributes, 'stack_trace'),
    encodedAttributes: null,
  });
}

function unreadableMemo(
  fields: Readonly<Record<string, Payload>> | null | undefined,
  error: unknown,
): string {
  const encoded = encodingsIn(Object.values(fields ?? {}));
  const how = encoded === '' ? messageOf(error) : `it is encoded as ${encoded}`;
  const fix = encoded === '' && UnreadableError.isInstance(error) ? '' : `; ${FIX}`;
  return `its memo cannot be read: ${how}${fix}`;
}

/** Returns the encodings and key ids of payloads that the default converter cannot read. */
function encodingsIn(payloads: readonly Payload[]): string {
  const all = payloads.flatMap(({ metadata }) => {
    const [encoding, key] = [textIn(metadata?.['encoding']), textIn(metadata?.[KEY_ID])];
    if (PLAIN.has(encoding)) return [];
    return [`"${visible(encoding)}"${key === '' ? '' : ` (key "${visible(key)}")`}`];
  });
  return [...new Set(all)].join(', ');
}

function textIn(bytes: Uint8Array | null | undefined): string {
  return Buffer.from(bytes ?? []).toString('utf8');
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
