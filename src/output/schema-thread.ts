import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import type { Json, JsonObject } from '../core/json.js';

/** A check of one value; `key` names the schema, so that the thread compiles it once. */
export interface ThreadJob {
  readonly key: string;
  readonly schema: JsonObject;
  readonly value: Json;
}

/** `fault`: what is wrong with the value, or null. `unusable`: why the schema cannot be checked. */
export type ThreadAnswer = { readonly fault: string | null } | { readonly unusable: string };

/** One check. */
const CHECK_MS = 5_000;
/** The start of a thread, on a machine under load. */
const START_MS = 20_000;
const HEAP_MB = 128;

/**
 * The code of the thread, as text: it has to run as it is, from sources and from a build. The
 * validator makes code of a schema, so the schema's author decides what runs here, and for how long.
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
  let answered;
  try { answered = answer(job); } catch (error) { answered = { unusable: String(error && error.message).slice(0, 300) }; }
  parentPort.postMessage(answered);
});
parentPort.postMessage('ready');
`;

/** A thread that checks values by schemas of others. It does one job at a time, and is idle in between. */
export interface SchemaThread {
  /** Never rejects, and takes five seconds at most once the thread runs; then the thread is ended. */
  run(job: ThreadJob): Promise<ThreadAnswer>;
  /** False once it has been ended: another one has to be started. */
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
  // Without a listener, a thread that runs out of memory takes the process with it.
  thread.on('error', () => (isAlive = false));
  // It must not keep a process alive that has nothing else to do.
  thread.unref();
  const started = messageOf(thread, START_MS);

  return {
    get isAlive() {
      return isAlive;
    },
    async run(job) {
      thread.ref();
      try {
        await started;
        const answer = messageOf(thread, CHECK_MS);
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
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

/** The next message; rejects when the thread ends, fails, or takes too long. */
async function messageOf(thread: Worker, limitMs: number): Promise<ThreadAnswer> {
  let timer: NodeJS.Timeout | undefined;
  const leaving: (() => void)[] = [];
  try {
    return await new Promise<ThreadAnswer>((resolve, reject) => {
      const onExit = (): void => reject(new Error('checking by it takes more memory than it may'));
      thread.once('message', resolve);
      thread.once('exit', onExit);
      leaving.push(
        () => thread.off('message', resolve),
        () => thread.off('exit', onExit),
      );
      timer = setTimeout(() => {
        reject(new Error(`checking by it takes longer than ${limitMs / 1_000} s`));
      }, limitMs);
    });
  } finally {
    clearTimeout(timer);
    for (const leave of leaving) leave();
  }
}
