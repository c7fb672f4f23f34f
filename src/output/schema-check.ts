import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { type Json, type JsonObject, canonicalJson, sha256Hex } from '../core/text/json.js';
import { faultText } from './schema-faults.js';
import type { SchemaError } from './schema-unions.js';

/** The check of one value; `key` identifies the schema, so that the thread compiles it once. */
interface ThreadJob {
  readonly key: string;
  readonly schema: JsonObject;
  readonly value: Json;
}

/** `errors`: what is wrong with the value, or null. `unusable`: why the schema cannot be used. */
type ThreadAnswer =
  | { readonly errors: readonly SchemaError[] | null }
  | { readonly unusable: string };

/** The time limit of one check in milliseconds. */
const CHECK_MS = 5_000;
/** The time limit for the start of a thread in milliseconds; generous, for a machine under load. */
const START_MS = 20_000;
const HEAP_MB = 128;

/**
 * The code of the thread as text, so it runs unchanged from sources and from a build. The validator
 * generates code from a schema, so the schema's author decides what runs here, and for how long.
 */
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads');
const { Ajv, AjvJsonSchemaValidator } = require(workerData.validator);
// The validator returns only a text, which this method makes of its errors, for all dialects.
Object.getPrototypeOf(Ajv.prototype).errorsText = (errors) => JSON.stringify(
  (errors ?? []).slice(0, 50).map(({ instancePath, schemaPath, keyword, params, message }) => ({
    instancePath: instancePath.slice(0, 500),
    schemaPath: schemaPath.slice(0, 500),
    keyword,
    params: JSON.stringify(params).length > 2000 ? {} : params,
    message: message.slice(0, 300),
  })));
let compiled = new Map();
function answer({ key, schema, value }) {
  if (!compiled.has(key)) {
    if (compiled.size >= 200) compiled = new Map();
    // An id would make two versions of one schema clash.
    const { $id: _, id: __, ...rest } = schema;
    try { compiled.set(key, { check: new AjvJsonSchemaValidator().getValidator(rest) }); }
    catch (error) { compiled.set(key, { unusable: String(error && error.message).slice(0, 300) }); }
  }
  const { check, unusable } = compiled.get(key);
  if (unusable !== undefined) return { unusable };
  const { valid, errorMessage } = check(value);
  return { errors: valid ? null : JSON.parse(errorMessage) };
}
parentPort.on('message', (job) => {
  let result;
  try { result = answer(job); } catch (error) { result = { unusable: String(error && error.message).slice(0, 300) }; }
  parentPort.postMessage(result);
});
parentPort.postMessage('ready');
`;

/** A thread that checks values by untrusted schemas, one at a time. */
interface SchemaThread {
  /**
   * Never rejects. A job takes at most five seconds once the thread runs; then the thread is
   * terminated.
   */
  run(job: ThreadJob): Promise<ThreadAnswer>;
  /** False once the thread has ended: a new one must be started. */
  readonly isAlive: boolean;
}

function startSchemaThread(): SchemaThread {
  const validator = createRequire(import.meta.url).resolve(
    '@modelcontextprotocol/client/validators/ajv',
  );
  const thread = new Worker(THREAD, {
    eval: true,
    env: {},
    execArgv: [],
    workerData: { validator },
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: 16 },
  });
  let isAlive = true;
  const end = (): void => {
    isAlive = false;
    void thread.terminate();
  };
  thread.once('exit', () => (isAlive = false));
  // Without a listener, a thread that runs out of memory ends the process.
  thread.on('error', () => (isAlive = false));
  // An idle thread must not keep the process alive.
  thread.unref();
  const started = nextMessage(thread, START_MS);

  return {
    get isAlive() {
      return isAlive;
    },
    async run(job) {
      thread.ref();
      try {
        await started;
        const answer = nextMessage(thread, CHECK_MS);
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is not a window
        thread.postMessage(job);
        return await answer;
      } catch (error) {
        end();
        return { unusable: error instanceof Error ? error.message : String(error) };
      } finally {
        thread.unref();
      }
    },
  };
}

/** Resolves to the next message; rejects if the thread ends, fails, or takes too long. */
async function nextMessage(thread: Worker, limitMs: number): Promise<ThreadAnswer> {
  let timer: NodeJS.Timeout | undefined;
  const cleanups: (() => void)[] = [];
  try {
    return await new Promise<ThreadAnswer>((resolve, reject) => {
      const onExit = (): void => reject(new Error('checking by it takes more memory than it may'));
      thread.once('message', resolve);
      thread.once('exit', onExit);
      cleanups.push(
        () => thread.off('message', resolve),
        () => thread.off('exit', onExit),
      );
      timer = setTimeout(() => {
        reject(new Error(`checking by it takes longer than ${limitMs / 1_000} s`));
      }, limitMs);
    });
  } finally {
    clearTimeout(timer);
    for (const cleanUp of cleanups) cleanUp();
  }
}

const MAX_UNUSABLE = 200;
const MAX_FAULT_CHARACTERS = 4_000;
/**
 * A check that waits longer than this for others is skipped, so a call never waits for many slow
 * schemas.
 */
const MAX_WAIT_MS = 15_000;
const SKIPPED = `checks by other schemas took longer than ${MAX_WAIT_MS / 1_000} s`;

/** Why schemas are no longer checked, by their hashes. */
const unusable = new LRUCache<string, string>({ max: MAX_UNUSABLE });
let thread: SchemaThread | null = null;
let previous: Promise<unknown> = Promise.resolve();

/** The check of a value by a schema. */
interface SchemaCheck {
  /** What is wrong with the value, as `place: expected X, got Y`; null if it is valid or was not checked. */
  readonly fault: string | null;
  /** Why this check was skipped, although the schema can be used; absent if it was not skipped. */
  readonly skipped?: string;
}

/**
 * Checks a value by an untrusted JSON schema of any dialect. If the schema cannot be used, there is
 * no fault. `what` names the whole value in a fault. The check runs in a thread of its own, which is
 * terminated after five seconds or with too much memory. A check that would wait for others for too
 * long is skipped. Never rejects.
 */
export async function checkOrSkip(
  schema: JsonObject,
  value: Json,
  what = 'the arguments',
): Promise<SchemaCheck> {
  const key = hashSchema(schema);
  if (unusable.has(key)) return { fault: null };
  const answer = await enqueue({ key, schema, value });
  if ('skipped' in answer) return { fault: null, skipped: answer.skipped };
  if ('unusable' in answer) {
    unusable.set(key, answer.unusable);
    return { fault: null };
  }
  const { errors } = answer;
  const fault = errors === null ? null : faultText(errors, { schema, value, what });
  return { fault: fault?.slice(0, MAX_FAULT_CHARACTERS) ?? null };
}

/** Returns the fault that `checkOrSkip` finds; null also for a check that was skipped. */
export async function checkBySchema(
  schema: JsonObject,
  value: Json,
  what?: string,
): Promise<string | null> {
  return (await checkOrSkip(schema, value, what)).fault;
}

function hashSchema(schema: JsonObject): string {
  return sha256Hex(canonicalJson(schema));
}

/** Runs the jobs one after the other, since there is one thread. */
async function enqueue(
  job: Parameters<SchemaThread['run']>[0],
): Promise<ThreadAnswer | { readonly skipped: string }> {
  const began = performance.now();
  const turn = previous.then(async () => {
    const known = unusable.get(job.key);
    if (known !== undefined) return { unusable: known };
    if (performance.now() - began > MAX_WAIT_MS) return { skipped: SKIPPED };
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
