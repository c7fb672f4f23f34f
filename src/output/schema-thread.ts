import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import type { Json, JsonObject } from '../core/json.js';

/** The check of one value; `key` identifies the schema, so that the thread compiles it once. */
export interface ThreadJob {
  readonly key: string;
  readonly schema: JsonObject;
  readonly value: Json;
}

/** `fault`: what is wrong with the value, or null. `unusable`: why the schema cannot be used. */
export type ThreadAnswer = { readonly fault: string | null } | { readonly unusable: string };

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
const { AjvJsonSchemaValidator } = require(workerData.validator);
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
  return { fault: valid ? null : errorMessage.slice(0, 8000) };
}
parentPort.on('message', (job) => {
  let result;
  try { result = answer(job); } catch (error) { result = { unusable: String(error && error.message).slice(0, 300) }; }
  parentPort.postMessage(result);
});
parentPort.postMessage('ready');
`;

/** A thread that checks values by untrusted schemas, one at a time. */
export interface SchemaThread {
  /**
   * Never rejects. A job takes at most five seconds once the thread runs; then the thread is
   * terminated.
   */
  run(job: ThreadJob): Promise<ThreadAnswer>;
  /** False once the thread has ended: a new one must be started. */
  readonly isAlive: boolean;
}

export function startSchemaThread(): SchemaThread {
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
