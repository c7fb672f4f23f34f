import { AsyncLocalStorage } from 'node:async_hooks';
import { fileURLToPath } from 'node:url';
import { PerdureError } from '../core/errors.js';
import { normalizeError } from './result/plain.js';

/**
 * Thrown by a tool for an error that no retry can fix and that the model should read at once: a
 * missing file, a refused amount, a malformed query. Any other error is retried if the tool's
 * effect allows it.
 *
 * @example
 * ```ts
 * import { defineTool, ToolError } from 'perdure';
 * import { z } from 'zod';
 *
 * const orders = new Map([['A1', 'sent']]);
 *
 * export const lookUpOrder = defineTool({
 *   name: 'look_up_order',
 *   description: 'Returns the state of an order.',
 *   effect: 'read',
 *   input: z.object({ order: z.string() }),
 *   execute: ({ order }) => {
 *     const state = orders.get(order);
 *     if (state === undefined) throw new ToolError(`order ${order}: not found; ask for the number`);
 *     return state;
 *   },
 * });
 * ```
 */
export class ToolError extends PerdureError {
  static readonly code = 'tool';
  override readonly name = 'ToolError';
  override readonly code = ToolError.code;
}

/**
 * Returns the error of a tool that the workflow handles itself. A worker executes it only if its workflow
 * code is from an earlier version.
 */
export function workflowOlder(why: string): ToolError {
  return new ToolError(`${why}; upgrade the workflow code: it is older than this tool`);
}

/** A call of a user's function. It owns everything that the function starts. */
interface Owner {
  /** The name in messages, such as `tool "refund"`. */
  readonly name: string;
  readonly parent: Owner | undefined;
  /** Fails the call; null once the call has ended. */
  fail: ((error: StrayError) => void) | null;
  /**
   * Whether an error after the end has been logged. Only the first is, since a timer may throw for
   * hours.
   */
  isLogged: boolean;
}

const owners = new AsyncLocalStorage<Owner>();
/** The number of workers that contain errors; at 0, nothing is tracked or caught. */
let containers = 0;
let log: (message: string) => void = () => undefined;

/**
 * An error that a user's function raised outside the promise that it returned: a promise that was
 * not awaited was rejected, or a timer, a listener, or a callback threw.
 */
export class StrayError extends Error {
  override readonly name = 'StrayError';
}

/**
 * Runs a user's function. Rejects with a `StrayError`, which names the function, if something that
 * it started raises an unhandled error before the function has ended; later errors are only logged.
 * Without `containStrayErrors`, it only runs the function.
 */
export async function runAttributed<T>(name: string, run: () => T | Promise<T>): Promise<T> {
  if (containers === 0) return await run();
  const owner: Owner = { name, parent: owners.getStore(), fail: null, isLogged: false };
  const stray = new Promise<never>((_, reject) => {
    owner.fail = reject;
  });
  try {
    const running = owners.run(owner, async () => {
      const value = await run();
      // Node reports an unhandled rejection only after all microtasks.
      await new Promise((resolve) => setImmediate(resolve));
      return value;
    });
    return await Promise.race([running, stray]);
  } finally {
    owner.fail = null;
  }
}

/**
 * Makes an unhandled error of a running user function fail that function instead of ending the
 * process. Errors after its end go to `write`. Any other error ends the process as usual, after a
 * line on stderr. Returns a function that stops this; calls are counted, so several workers may
 * contain errors.
 */
export function containStrayErrors(write: (message: string) => void): () => void {
  log = write;
  containers += 1;
  if (containers === 1) {
    process.on('unhandledRejection', onRejection);
    process.on('uncaughtException', onException);
  }
  let hasStopped = false;
  return () => {
    if (hasStopped) return;
    hasStopped = true;
    containers -= 1;
    if (containers === 0) removeListeners();
  };
}

function removeListeners(): void {
  process.off('unhandledRejection', onRejection);
  process.off('uncaughtException', onException);
}

function onRejection(reason: unknown): void {
  if (failOwner(reason, 'a promise that was not awaited was rejected')) return;
  // Other listeners also handle it; without any, Node would throw.
  if (process.listenerCount('unhandledRejection') > 1 || !rejectionsThrow()) return;
  throw reason instanceof Error
    ? reason
    : new Error(`a promise was rejected without a handler: ${normalizeError(reason).message}`);
}

function onException(error: unknown): void {
  if (failOwner(error, 'a timer, a listener, or a callback threw')) return;
  if (process.listenerCount('uncaughtException') > 1) return;
  const { message } = normalizeError(error);
  // The log may not write before the process ends.
  console.error(`The process ends because of an error that belongs to no tool: ${message}`);
  removeListeners();
  // Without a listener, Node ends the process as usual.
  process.nextTick(() => {
    throw error;
  });
}

/**
 * Fails the function that owns the error, or logs the error; returns false if no function owns it.
 */
function failOwner(error: unknown, how: string): boolean {
  const owner = owners.getStore();
  if (owner === undefined) return false;
  const { message } = normalizeError(error);
  const text = `${owner.name}: ${how}: ${message}`;
  const fail = innermostFail(owner);
  if (fail !== null) {
    log(`${text}; the call fails`);
    fail(new StrayError(text, { cause: error }));
  } else if (!owner.isLogged) {
    owner.isLogged = true;
    log(`${text}; its call had ended before. Await what it starts, or catch its errors`);
  }
  return true;
}

/** Returns `fail` of the innermost call around the error that has not ended, or null. */
function innermostFail(owner: Owner): Owner['fail'] {
  for (let at: Owner | undefined = owner; at !== undefined; at = at.parent) {
    if (at.fail !== null) return at.fail;
  }
  return null;
}

/** Returns whether Node would end the process because of an unhandled rejection. */
function rejectionsThrow(): boolean {
  const flags = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');
  const mode = /--unhandled-rejections[= ]([a-z-]+)/.exec(flags)?.[1] ?? 'throw';
  return mode === 'throw' || mode === 'strict';
}

const DEFAULT_LIMIT_MS = 5_000;

/** The value of a user's function, or the reason why there is none. */
export type Guarded<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly message: string };

/**
 * Runs a user's function that is evaluated together with a model reply (a refinement, a predicate,
 * a description), so that it cannot lose the reply. Never rejects: an error that it throws or
 * raises outside its promise, and a promise that takes longer than `limitMs` (5 s by default), are
 * returned as a failure. `name` appears in messages. A synchronous endless loop cannot be stopped.
 */
export async function guarded<Value>(
  name: string,
  work: () => Value | Promise<Value>,
  limitMs = DEFAULT_LIMIT_MS,
): Promise<Guarded<Value>> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Guarded<Value>>((resolve) => {
    const message = `it did not finish within ${limitMs / 1000} s`;
    timer = setTimeout(() => resolve({ ok: false, message }), limitMs);
  });
  try {
    const value = (async () => ({ ok: true, value: await runAttributed(name, work) }) as const)();
    return await Promise.race([value, late]);
  } catch (thrown) {
    return { ok: false, message: normalizeError(thrown).message };
  } finally {
    clearTimeout(timer);
  }
}

/** The folder of perdure's own code: `src`, or `dist` in the package. */
const OWN_CODE = new URL('..', import.meta.url);
/** Parts of a place in code that a user did not write. */
const FOREIGN = ['node:', '/node_modules/', fileURLToPath(OWN_CODE), OWN_CODE.href];
const MAX_FRAMES = 5;

const MAX_CAUSES = 8;
const MAX_STACK_CHARACTERS = 100_000;

/**
 * Returns the frames of an error and its causes that are in the user's own code, innermost first:
 * `refund (/app/tools.ts:12:9)`. Frames of perdure, of packages, and of Node are left out, unless
 * PERDURE_DEBUG is set. Never throws.
 */
export function userFrames(thrown: unknown): readonly string[] {
  const frames = new Set<string>();
  try {
    let error = thrown;
    for (let depth = 0; error instanceof Error && depth < MAX_CAUSES; depth += 1) {
      for (const frame of framesIn(error.stack)) frames.add(frame);
      error = error.cause;
    }
  } catch {
    // A getter of the error has thrown; the frames so far are enough.
  }
  if (process.env['PERDURE_DEBUG']) return [...frames];
  const own = [...frames].filter((frame) => !FOREIGN.some((part) => frame.includes(part)));
  return own.slice(0, MAX_FRAMES);
}

function framesIn(stack: unknown): readonly string[] {
  if (typeof stack !== 'string') return [];
  return stack
    .slice(0, MAX_STACK_CHARACTERS)
    .split('\n')
    .flatMap((line) => {
      const text = line.trim();
      // A frame ends with its line and column; any other line belongs to the message.
      return text.startsWith('at ') && /:\d{1,9}:\d{1,9}\)?$/.test(text) ? [text.slice(3)] : [];
    });
}
