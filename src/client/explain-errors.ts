import type { Client } from '@temporalio/client';
import { NoRunError, NoServerError, PerdureError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { isObject } from '../core/text/json.js';
import { deletedRunMessage } from '../history/read-run.js';
import type { Archive } from '../storage/blob-store.js';
import { hashedId } from '../temporal/stored-ids.js';
import { unknownIdHint } from './run-ids.js';
import { isUnanswered, serverAddress, unreachable } from '../temporal/grpc.js';

/** The methods of an iterator, which programs do not name. */
const ITERATION: ReadonlySet<string> = new Set(['next', 'return', 'throw']);

/** What explains an error of a client's method. */
interface Sources {
  readonly client: Client;
  readonly archive: Archive;
}

/** The method whose error is explained. */
interface Place {
  /** How programs name the method, or the object that it belongs to. */
  readonly path: string;
  /** The run id in the method's first argument; null if that argument does not name a run. */
  readonly run: string | null;
}

/**
 * Returns the same object, whose methods reject with explained errors. This includes the methods of
 * its fields, and of what its methods return at once, such as iterators.
 */
export function withExplainedErrors<T extends object>(
  target: T,
  sources: Sources,
  place: Place,
): T {
  const explained = (value: unknown, inner: Place): unknown => {
    if (value instanceof Promise) {
      return value.catch(async (error: unknown) => {
        throw await explain(error, sources, inner);
      });
    }
    if (typeof value === 'function') {
      return (...args: readonly unknown[]) =>
        explained(Reflect.apply(value, target, args), { ...inner, run: inner.run ?? runOf(args) });
    }
    const isPart = typeof value === 'object' && value !== null;
    return isPart ? withExplainedErrors(value, sources, inner) : value;
  };
  const made = new Map<unknown, unknown>();
  return new Proxy(target, {
    get(_, key) {
      const value: unknown = Reflect.get(target, key);
      const isMethod = typeof key === 'string' && !ITERATION.has(key);
      const inner = isMethod ? { ...place, path: `${place.path}.${key}` } : place;
      // A method is the same function each time, as in any object.
      if (!made.has(value)) made.set(value, explained(value, inner));
      return made.get(value);
    },
  });
}

function runOf([first]: readonly unknown[]): string | null {
  const id = isObject(first) ? first['id'] : first;
  return typeof id === 'string' ? id : null;
}

/**
 * Returns a `NoServerError` in place of the SDK's error if the server does not answer, and an error
 * that names the archive if the server has deleted the run. Returns any other error unchanged.
 */
async function explain(
  thrown: unknown,
  { client, archive }: Sources,
  { path, run }: Place,
): Promise<unknown> {
  if (!PerdureError.isInstance(thrown) || NoServerError.isInstance(thrown)) {
    return isUnanswered(thrown) ? unreachable(serverAddress(client), thrown, path) : thrown;
  }
  if (run === null || !NoRunError.isInstance(thrown)) return thrown;
  const hashed = hashedId(client, 'run', run);
  const { namespace } = client.options;
  const deleted = await deletedRunMessage(archive, { namespace, id: hashed });
  const hint = deleted === null ? await unknownIdHint(client, run) : null;
  if (deleted === null && hint === null && hashed === run) return thrown;
  const message = (deleted ?? thrown.message).replaceAll(hashed, visible(run));
  return new NoRunError(hint === null ? message : `${message}; ${hint}`, { cause: thrown });
}
