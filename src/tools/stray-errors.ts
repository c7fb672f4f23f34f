import { AsyncLocalStorage } from 'node:async_hooks';
import { normalizeError } from './result/normalize-error.js';

/** A call of a user's function, as the owner of all that it starts. */
interface Owner {
  /** As people know it: `tool "refund"`. */
  readonly name: string;
  readonly parent: Owner | undefined;
  /** Fails the call; null once it has ended. */
  fail: ((error: StrayError) => void) | null;
  /** Whether an error after the end has been logged; a timer may throw for hours. */
  isNoted: boolean;
}

const owners = new AsyncLocalStorage<Owner>();
/** How many workers want it: without any, nothing is tracked and nothing is caught. */
let wanted = 0;
let note: (message: string) => void = () => undefined;

/**
 * An error that a user's function raised outside the promise that it returned: a promise that nobody
 * awaited was rejected, or a timer, a listener, or a callback threw.
 */
export class StrayError extends Error {
  override readonly name = 'StrayError';
}

/**
 * Runs a user's function. Rejects with a `StrayError`, which names it, when something that it started
 * raises an error that nobody handles before the function has ended; later ones are only logged.
 * Without `containStrayErrors` it just runs the function.
 */
export async function attributed<T>(name: string, run: () => T | Promise<T>): Promise<T> {
  if (wanted === 0) return await run();
  const owner: Owner = { name, parent: owners.getStore(), fail: null, isNoted: false };
  const stray = new Promise<never>((_, reject) => {
    owner.fail = reject;
  });
  try {
    const running = owners.run(owner, async () => {
      const value = await run();
      // Node speaks of a rejection that nobody handles only when the microtasks are done.
      await new Promise((resolve) => setImmediate(resolve));
      return value;
    });
    return await Promise.race([running, stray]);
  } finally {
    owner.fail = null;
  }
}

/**
 * From now on an error that belongs to a running function of a user fails that function instead of
 * ending the process; one that comes after its end is logged by `log`. Any other error has the fate
 * that it has without this, after a line on stderr. Gives what ends it; counted, so that several
 * workers may want it.
 */
export function containStrayErrors(log: (message: string) => void): () => void {
  note = log;
  wanted += 1;
  if (wanted === 1) {
    process.on('unhandledRejection', onRejection);
    process.on('uncaughtException', onException);
  }
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    wanted -= 1;
    if (wanted === 0) letGo();
  };
}

function letGo(): void {
  process.off('unhandledRejection', onRejection);
  process.off('uncaughtException', onException);
}

function onRejection(reason: unknown): void {
  if (blame(reason, 'a promise that nobody awaited was rejected')) return;
  // Other listeners have been asked, too; without any, Node would throw.
  if (process.listenerCount('unhandledRejection') > 1 || !rejectionsThrow()) return;
  throw reason instanceof Error
    ? reason
    : new Error(`a promise was rejected, and nobody handled it: ${normalizeError(reason).message}`);
}

function onException(error: unknown): void {
  if (blame(error, 'a timer, a listener, or a callback threw')) return;
  if (process.listenerCount('uncaughtException') > 1) return;
  const { message } = normalizeError(error);
  // Not by the log: it may write later than the process lives.
  console.error(`The process ends, for an error that belongs to no tool: ${message}`);
  letGo();
  // Nobody is there to catch it any more: Node ends the process as it always does.
  process.nextTick(() => {
    throw error;
  });
}

/** Whether the error belongs to a function, which then has been failed, or the error logged. */
function blame(error: unknown, how: string): boolean {
  const owner = owners.getStore();
  if (owner === undefined) return false;
  const { message } = normalizeError(error);
  const text = `${owner.name}: ${how}: ${message}`;
  const failing = stillRunning(owner);
  if (failing !== null) {
    note(`${text}; the call fails`);
    failing(new StrayError(text, { cause: error }));
  } else if (!owner.isNoted) {
    owner.isNoted = true;
    note(`${text}; its call had ended before. Await what it starts, or catch its errors`);
  }
  return true;
}

/** The innermost call around the error that has not ended. */
function stillRunning(owner: Owner): Owner['fail'] {
  for (let at: Owner | undefined = owner; at !== undefined; at = at.parent) {
    if (at.fail !== null) return at.fail;
  }
  return null;
}

/** Whether Node would end the process for a rejection that nobody handles. */
function rejectionsThrow(): boolean {
  const flags = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');
  const mode = /--unhandled-rejections[= ]([a-z-]+)/.exec(flags)?.[1] ?? 'throw';
  return mode === 'throw' || mode === 'strict';
}
