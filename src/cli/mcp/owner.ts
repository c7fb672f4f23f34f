import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { sha256Hex } from '../../core/digest.js';
import { isObject } from '../../core/json.js';
import { visible } from '../../core/text/summaries.js';
import { describeRun } from '../../history/read-run.js';
import { NoRunError } from '../../core/errors.js';

/** The field of a run's memo that says which MCP server has started it. */
const FIELD = 'mcpOwner';

/**
 * The secret of this home's MCP server, for this user of the machine: the same after a restart, and read by
 * nobody else. It marks the runs that the server has started.
 */
export async function mcpOwner(home: string): Promise<string> {
  const user = process.getuid?.() ?? 0;
  return await secretIn(home, `mcp-owner-${user}`);
}

/** The memo that a run of this owner starts with; it is worth nothing in another run. */
export function ownedMemo(owner: string, run: string): Readonly<Record<string, string>> {
  return { [FIELD]: sha256Hex(`${owner} ${run}`) };
}

/** Rejects with a `NoRunError` for a run that another program, server or user has started. */
export async function requireOwnRun(client: Client, run: string, owner: string): Promise<void> {
  const { memo } = await describeRun(client, run).catch(asUnknownRun(run));
  if (isObject(memo) && memo[FIELD] === ownedMemo(owner, run)[FIELD]) return;
  asUnknownRun(run)(new NoRunError(run));
}

/** The same words for a run of another and for none, so that nobody learns which ids there are. */
function asUnknownRun(run: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof NoRunError)) throw error;
    throw new NoRunError(
      `id: this server has started no run "${visible(run)}"; give an id that agent_start gave`,
    );
  };
}

/** Made once. Of two servers that begin at once, one makes it, and a reader never sees a part of it. */
async function secretIn(home: string, name: string): Promise<string> {
  await mkdir(home, { recursive: true, mode: 0o700 });
  const file = join(home, name);
  const found = await readFile(file, 'utf8').catch(unless('ENOENT'));
  if (found !== null) return found;
  const temporary = `${file}.${randomUUID()}.tmp`;
  await writeFile(temporary, randomBytes(32).toString('hex'), { mode: 0o600, flag: 'wx' });
  try {
    await link(temporary, file).catch(unless('EEXIST'));
  } finally {
    await rm(temporary, { force: true });
  }
  return await readFile(file, 'utf8');
}

function unless(code: string): (error: unknown) => null {
  return (error) => {
    if (error instanceof Error && 'code' in error && error.code === code) return null;
    throw error;
  };
}
