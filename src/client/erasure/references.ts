import { Client, ScheduleNotFoundError, WorkflowNotFoundError } from '@temporalio/client';
import { visible } from '../../core/state/summaries.js';
import { historyFromJson } from '../../history/history-event.js';
import { parseJson, isObject } from '../../core/text/json.js';
import { type Archive, BlobError, type BlobStore } from '../../storage/blob-store.js';
import {
  type History,
  decodeHistory,
  describeWorkflow,
  fetchHistory,
  heartbeatTexts,
  listSchedules,
  listWorkflows,
  payloadTexts,
} from '../../temporal/server-answers.js';

/** Where everything about runs is. */
export interface ErasureSources {
  readonly client: Client;
  readonly archive: Archive;
  readonly blobs: BlobStore;
  /** The namespaces whose runs use the stores; absent: all of the server. */
  readonly namespaces?: readonly string[] | undefined;
  /** Interrupts an erasure, which the next one then continues. */
  readonly signal?: AbortSignal;
}

/** The texts of the blob store that must stay. */
interface UsedBlobs {
  readonly names: ReadonlySet<string>;
  /** What could not be read, and may refer to any text; empty if everything could. */
  readonly unreadable: readonly string[];
}

/** Returns the names of stored texts that a text contains, wherever they begin. */
export function namesIn(text: string, stored: ReadonlySet<string>): ReadonlySet<string> {
  const found = new Set<string>();
  for (const [digits] of text.matchAll(/[0-9a-f]{64,}/g)) {
    for (let at = 0; at + 64 <= digits.length; at += 1) {
      const name = digits.slice(at, at + 64);
      if (stored.has(name)) found.add(name);
    }
  }
  return found;
}

/**
 * Returns the stored texts to which texts refer, directly or through other stored texts.
 * `unreadable`: those that exist and cannot be read.
 */
export async function followNames(
  blobs: BlobStore,
  names: ReadonlySet<string>,
  stored: ReadonlySet<string>,
): Promise<UsedBlobs> {
  const found = new Set(names);
  const unreadable: string[] = [];
  // A set yields what is added to it meanwhile.
  for (const sha256 of found) {
    try {
      for (const name of namesIn(await blobs.get({ sha256 }), stored)) found.add(name);
    } catch (error) {
      if (error instanceof BlobError && error.kind === 'missing') continue;
      unreadable.push(messageOf(error));
    }
  }
  return { names: found, unreadable };
}

/** A clock of the server may be this much behind the one here, in ms. */
const SKEW_MS = 60_000;

/**
 * Returns the stored texts to which anything but erased segments refers: histories of all namespaces,
 * heartbeats, histories in the archive, and schedules. `erased`: run ids of segments.
 */
export async function usedBlobs(
  sources: ErasureSources,
  {
    stored,
    erased,
  }: { readonly stored: ReadonlySet<string>; readonly erased: ReadonlySet<string> },
): Promise<UsedBlobs> {
  const names = new Set<string>();
  const unreadable: string[] = [];
  const attempt = async (read: () => Promise<readonly string[]>): Promise<void> => {
    sources.signal?.throwIfAborted();
    try {
      for (const text of await read()) for (const name of namesIn(text, stored)) names.add(name);
    } catch (error) {
      // It was deleted meanwhile. After any other refusal, what it refers to is unknown.
      const isGone =
        error instanceof WorkflowNotFoundError || error instanceof ScheduleNotFoundError;
      if (!isGone) unreadable.push(messageOf(error));
    }
  };
  const seen = new Set(erased);
  const readNamespace = async (client: Client, query: string): Promise<void> => {
    try {
      for await (const { info, unreadable: problem } of listWorkflows(client, query)) {
        const { workflowId: id, runId, memo = {}, closeTime } = info;
        if (seen.has(runId)) continue;
        seen.add(runId);
        await attempt(async () => {
          if (problem !== null) throw new Error(problem);
          return [
            JSON.stringify(memo),
            ...(await payloadTexts(await fetchHistory(client, id, runId))),
            ...(closeTime ? [] : heartbeatTexts(await describeWorkflow(client, id, runId))),
          ];
        });
      }
    } catch (error) {
      const { namespace } = client.options;
      unreadable.push(`namespace "${visible(namespace)}" cannot be read: ${messageOf(error)}`);
    }
  };
  const begin = Date.now();
  const clients = await clientsOf(sources).catch((error: unknown) => {
    const fix = 'name those that use the stores';
    unreadable.push(`the namespaces of the server cannot be listed (${messageOf(error)}); ${fix}`);
    return [sources.client];
  });
  for (const client of clients) await readNamespace(client, '');
  for (const client of clients) await readSchedules(client, attempt);
  await readArchive(sources, { erased, attempt });
  const used = await followNames(sources.blobs, names, stored);
  for (const name of used.names) names.add(name);
  unreadable.push(...used.unreadable);
  // A fork that was started meanwhile may name any text of an older run.
  const since = new Date(begin - SKEW_MS).toISOString();
  const before = new Set(names);
  for (const client of clients) await readNamespace(client, `StartTime >= "${since}"`);
  const fresh = new Set([...names].filter((name) => !before.has(name)));
  const rest = await followNames(sources.blobs, fresh, stored);
  return {
    names: new Set([...names, ...rest.names]),
    unreadable: [...unreadable, ...rest.unreadable],
  };
}

type Attempt = (read: () => Promise<readonly string[]>) => Promise<void>;

async function readSchedules(client: Client, attempt: Attempt): Promise<void> {
  const ids: string[] = [];
  await attempt(async () => {
    for await (const { id } of listSchedules(client)) ids.push(id);
    return [];
  });
  for (const id of ids) {
    await attempt(async () => {
      const { action, memo } = await client.schedule.getHandle(id).describe();
      return [JSON.stringify([action, memo])];
    });
  }
}

async function readArchive(
  { client, archive }: ErasureSources,
  { erased, attempt }: { readonly erased: ReadonlySet<string>; readonly attempt: Attempt },
): Promise<void> {
  await attempt(async () => {
    if (archive.erasure === undefined) throw new Error('the archive cannot list its histories');
    for await (const { history, json } of archive.erasure.all(null)) {
      if (erased.has(history.runId)) continue;
      await attempt(async () => {
        const read = archivedHistory(json);
        if (read === null) throw new Error(`the archived history ${history.runId} is damaged`);
        return await payloadTexts(await decodeHistory(client, read.id, read.history));
      });
    }
    return [];
  });
}

/** An archived history with the workflow id that its first event names. */
interface ReadHistory {
  readonly id: string;
  readonly history: History;
}

/** Parses an archived history, whose payloads may be encoded; null if it is damaged. */
export function archivedHistory(json: string): ReadHistory | null {
  const value = parseJson(json);
  const events: unknown = isObject(value) ? value['events'] : undefined;
  if (!Array.isArray(events)) return null;
  try {
    const history = historyFromJson({ events });
    const id = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowId;
    return id ? { id, history } : null;
  } catch {
    return null;
  }
}

/** Returns a client for each namespace whose runs may use the stores. */
async function clientsOf({ client, namespaces }: ErasureSources): Promise<readonly Client[]> {
  const { namespace: own, dataConverter } = client.options;
  const found = new Set([own, ...(namespaces ?? (await listNamespaces(client)))]);
  const { connection } = client;
  return [...found].map((namespace) =>
    namespace === own
      ? client
      : new Client({ connection, namespace, ...(dataConverter && { dataConverter }) }),
  );
}

/** Returns the namespaces of the server that users have made. */
async function listNamespaces(client: Client): Promise<readonly string[]> {
  const found: string[] = [];
  let nextPageToken: Uint8Array = Buffer.alloc(0);
  do {
    const page = await client.workflowService.listNamespaces({ pageSize: 100, nextPageToken });
    for (const { namespaceInfo } of page.namespaces) {
      const name = namespaceInfo?.name ?? '';
      if (name !== '' && name !== 'temporal-system') found.push(name);
    }
    ({ nextPageToken } = page);
  } while (nextPageToken.length > 0);
  return found;
}

export function messageOf(error: unknown): string {
  return visible(error instanceof Error ? error.message : String(error));
}
