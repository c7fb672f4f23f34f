import { LRUCache } from 'lru-cache';
import { sha256Hex } from '../core/digest.js';
import { canonicalJson, type Json, type JsonObject } from '../core/json.js';
import { startSchemaThread, type SchemaThread, type ThreadAnswer } from './schema-thread.js';

const MAX_UNUSABLE = 200;
/**
 * A check that waits longer than this for others is skipped, so a call never waits for many slow
 * schemas.
 */
const MAX_WAIT_MS = 15_000;

/** Why schemas are no longer checked, by their hashes. */
const unusable = new LRUCache<string, string>({ max: MAX_UNUSABLE });
let thread: SchemaThread | null = null;
let previous: Promise<unknown> = Promise.resolve();

/**
 * Checks a value by an untrusted JSON schema of any dialect. Resolves to the fault in words for the
 * model; null if the value is valid or the schema cannot be used. `what` names the value in the
 * fault. The check runs in a thread of its own, which is terminated after five seconds or with too
 * much memory. Never rejects.
 */
export async function checkBySchema(
  schema: JsonObject,
  value: Json,
  what = 'the arguments',
): Promise<string | null> {
  const key = hashSchema(schema);
  if (unusable.has(key)) return null;
  const answer = await enqueue({ key, schema, value });
  if ('unusable' in answer) {
    unusable.set(key, answer.unusable);
    return null;
  }
  return answer.fault?.replaceAll(/^data\b|(?<=, )data\b/g, what).slice(0, 4_000) ?? null;
}

function hashSchema(schema: JsonObject): string {
  return sha256Hex(canonicalJson(schema));
}

/** Runs the jobs one after the other, since there is one thread. */
async function enqueue(job: Parameters<SchemaThread['run']>[0]): Promise<ThreadAnswer> {
  const began = performance.now();
  const turn = previous.then(async (): Promise<ThreadAnswer> => {
    const known = unusable.get(job.key);
    if (known !== undefined) return { unusable: known };
    if (performance.now() - began > MAX_WAIT_MS) return { fault: null };
    if (thread?.isAlive !== true) thread = startSchemaThread();
    return await thread.run(job);
  });
  previous = turn;
  return await turn;
}

/**
 * Returns why values are not checked by this schema; undefined if they are, or if none has been
 * checked yet.
 */
export function getUncheckedReason(schema: JsonObject): string | undefined {
  return unusable.get(hashSchema(schema));
}
