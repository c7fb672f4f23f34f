import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import type { KnownAgent } from '../../client/fork-run.js';
import { NoRunError } from '../../core/errors.js';
import { visible } from '../../core/state/summaries.js';
import { isObject, sha256Hex } from '../../core/text/json.js';
import { storedId } from '../../client/run-ids.js';
import { decodeFields } from '../../history/history-event.js';
import { describeRun, newestArchived } from '../../history/read-run.js';
import type { Archive, BlobStore } from '../../storage/blob-store.js';
import { decodeHistory } from '../../temporal/server-answers.js';
import type { CliContext } from '../context.js';
import { osUser } from '../input/option-parsers.js';

/** The field of a run's memo that names the MCP server that started it. */
const MEMO_FIELD = 'mcpOwner';

/**
 * Returns the secret of this home's MCP server for the current user. It is the same after a
 * restart, no other user can read it, and it marks the runs that the server started.
 */
export async function mcpOwner(home: string): Promise<string> {
  const user = process.getuid?.() ?? 0;
  return await readOrCreateSecret(home, `mcp-owner-${user}`);
}

/** Returns the memo that a run of this owner starts with. It is not valid for another run. */
export function ownedMemo(owner: string, run: string): Readonly<Record<string, string>> {
  return { [MEMO_FIELD]: sha256Hex(`${owner} ${run}`) };
}

/** Throws a `NoRunError` for a run that another program, server, or user started. */
export async function requireOwnRun(
  client: Client,
  { run, owner }: { readonly run: string; readonly owner: string },
  archive?: Archive,
): Promise<void> {
  const memo = await memoOf(client, run, archive).catch(asUnknownRun(run));
  if (isObject(memo) && memo[MEMO_FIELD] === ownedMemo(owner, run)[MEMO_FIELD]) return;
  asUnknownRun(run)(new NoRunError(run));
}

/**
 * Reads the memo of a run. For a run that the server has deleted, reads the memo with which its
 * last segment started.
 */
async function memoOf(client: Client, id: string, archive?: Archive): Promise<unknown> {
  try {
    return (await describeRun(client, id)).memo;
  } catch (error) {
    if (archive === undefined || !NoRunError.isInstance(error)) throw error;
    const found = await newestArchived(archive, { namespace: client.options.namespace, id });
    const [started] = found?.history.events ?? [];
    const memo = started?.workflowExecutionStartedEventAttributes?.memo;
    if (found === null) throw error;
    await decodeHistory(client, id, found.history);
    return decodeFields(memo?.fields ?? {});
  }
}

/** Reports a foreign run with the same message as an unknown run, so ids cannot be discovered. */
function asUnknownRun(run: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof NoRunError)) throw error;
    throw new NoRunError(`id: expected an id that agent_start returned, got "${visible(run)}"`);
  };
}

/**
 * Creates the secret once. If two servers start at once, one creates it, and no reader sees a
 * partial file.
 */
async function readOrCreateSecret(home: string, name: string): Promise<string> {
  await mkdir(home, { recursive: true, mode: 0o700 });
  const file = join(home, name);
  const found = await readFile(file, 'utf8').catch(ignoreCode('ENOENT'));
  if (found !== null) return found;
  const temporary = `${file}.${randomUUID()}.tmp`;
  await writeFile(temporary, randomBytes(32).toString('hex'), { mode: 0o600, flag: 'wx' });
  try {
    await link(temporary, file).catch(ignoreCode('EEXIST'));
  } finally {
    await rm(temporary, { force: true });
  }
  return await readFile(file, 'utf8');
}

function ignoreCode(code: string): (error: unknown) => null {
  return (error) => {
    if (error instanceof Error && 'code' in error && error.code === code) return null;
    throw error;
  };
}

/** What the MCP server needs from the command. */
export interface RunsAccess extends Pick<CliContext, 'options' | 'env'> {
  /** The agents of the configuration. */
  readonly agents: readonly (KnownAgent & { readonly description: string })[];
  readonly taskQueue: string;
  readonly client: () => Promise<Client>;
  /** Resolves when a worker serves the queue. Returns whether this process hosts it. */
  readonly ensureWorker: (taskQueue: string) => Promise<boolean>;
  /** Holds the runs that the server has deleted. */
  readonly archive: Archive;
  /** Holds arguments that are too large for the history. */
  readonly blobs: BlobStore;
  /** Returns the secret that marks the runs that this server starts. */
  readonly owner: () => Promise<string>;
  /** Serve every run of the namespace, not only the runs that this server started. */
  readonly allRuns: boolean;
  /** Offer tools that list requests and decide about them. */
  readonly canDecide: boolean;
}

/**
 * Returns the client for a run, and the id that the server has. Throws a `NoRunError` if the server does not serve
 * that run.
 */
export async function servedRun(
  { client, owner, allRuns, archive }: RunsAccess,
  named: string,
): Promise<{ readonly client: Client; readonly id: string }> {
  const connected = await client();
  const id = await storedId(connected, named, archive);
  if (!allRuns) await requireOwnRun(connected, { run: id, owner: await owner() }, archive);
  return { client: connected, id };
}

/** Many MCP clients give up after a minute. */
export const UPDATE_TIMEOUT = { within: 45_000 };

/**
 * Returns the name of the decider, which is a claim: an MCP client has no identity that can be
 * verified.
 */
export function mcpClaim(): string {
  return `MCP client, ${osUser()}`;
}
