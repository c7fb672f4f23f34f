import type { Client } from '@temporalio/client';
import { z } from 'zod';
import { osUser } from '../input/os-user.js';
import type { KnownAgent } from '../../client/known-agents.js';
import type { Archive } from '../../storage/archive.js';
import { requireOwnRun } from './owner.js';

/** What the MCP server needs from the command. */
export interface RunsAccess {
  /** The agents of the configuration. */
  readonly agents: readonly (KnownAgent & { readonly description: string })[];
  readonly taskQueue: string;
  readonly client: () => Promise<Client>;
  /** Resolves when a worker serves the queue. Returns whether this process hosts it. */
  readonly ensureWorker: (taskQueue: string) => Promise<boolean>;
  /** Holds the runs that the server has deleted. */
  readonly archive: Archive;
  /** Returns the secret that marks the runs that this server starts. */
  readonly owner: () => Promise<string>;
  /** Serve every run of the namespace, not only the runs that this server started. */
  readonly allRuns: boolean;
  /** Offer tools that list requests and decide about them. */
  readonly canDecide: boolean;
}

/** Returns the client for a run. Throws a `NoRunError` if the server does not serve that run. */
export async function clientFor(
  { client, owner, allRuns, archive }: RunsAccess,
  run: string,
): Promise<Client> {
  const connected = await client();
  if (!allRuns) await requireOwnRun(connected, { run, owner: await owner() }, archive);
  return connected;
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

/** The input field that names a run. */
export const runId = z.string().min(1).describe('the run, as agent_start returned it');

/** The input field that makes a request idempotent. */
export const operationId = z
  .string()
  .min(1)
  .max(200)
  .describe('an id that you choose, new for each new operation; repeating it has no second effect');
