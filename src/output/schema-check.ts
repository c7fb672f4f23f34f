import { LRUCache } from 'lru-cache';
import { sha256Hex } from '../core/digest.js';
import { canonicalJson, type Json, type JsonObject } from '../core/json.js';
import { startSchemaThread, type SchemaThread, type ThreadAnswer } from './schema-thread.js';

const KEPT = 200;
/** A check that had to wait longer for others is left out: a call must not wait for many slow schemas. */
const LONGEST_WAIT_MS = 15_000;

/** Why schemas are not checked any more, by their hashes. */
const unusable = new LRUCache<string, string>({ max: KEPT });
let thread: SchemaThread | null = null;
let before: Promise<unknown> = Promise.resolve();

/**
 * What is wrong with a value under a JSON schema of any dialect, for the model; null where nothing is, or
 * where the schema cannot be checked. `what` names the value. The schema is another's: its patterns and references run in a thread
 * of their own, which is ended after five seconds or with too much memory. Never rejects.
 */
export async function schemaCheck(
  schema: JsonObject,
  value: Json,
  what = 'the arguments',
): Promise<string | null> {
  const key = keyOf(schema);
  if (unusable.has(key)) return null;
  const answer = await inTurn({ key, schema, value });
  if ('unusable' in answer) {
    unusable.set(key, answer.unusable);
    return null;
  }
  return answer.fault?.replaceAll(/^data\b|(?<=, )data\b/g, what).slice(0, 4_000) ?? null;
}

/** Why values are not checked by this schema; undefined where they are. Known once one has been tried. */
export function uncheckedBecause(schema: JsonObject): string | undefined {
  return unusable.get(keyOf(schema));
}

function keyOf(schema: JsonObject): string {
  return sha256Hex(canonicalJson(schema));
}

/** One after the other, as there is one thread. */
async function inTurn(job: Parameters<SchemaThread['run']>[0]): Promise<ThreadAnswer> {
  const began = performance.now();
  const turn = before.then(async (): Promise<ThreadAnswer> => {
    const known = unusable.get(job.key);
    if (known !== undefined) return { unusable: known };
    if (performance.now() - began > LONGEST_WAIT_MS) return { fault: null };
    if (thread?.isAlive !== true) thread = startSchemaThread();
    return await thread.run(job);
  });
  before = turn;
  return await turn;
}
