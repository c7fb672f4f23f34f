import { z } from 'zod';
import {
  IdTakenError,
  InputError,
  NoRunError,
  NoServerError,
  NotDeliveredError,
  PerdureError,
  RefusedError,
  ResultLostError,
  UnreadableError,
} from '../core/errors.js';
import type { Runnable } from '../client/runnable-texts.js';
import { withProgram } from '../core/requests/commands.js';
import { printable, shorten } from '../core/text/text.js';
import { REFUSAL_CODES } from '../core/transcript/request.js';
import { redactMessage } from '../secrets/redact.js';
import { isUnanswered } from '../temporal/grpc.js';
import { likelyMeant } from '../validation/near-names.js';

/** What a request was refused for, in the one form of all errors. */
interface ErrorBody {
  readonly error: {
    /** Stable; programs can rely on it. */
    readonly code: string;
    readonly message: string;
    /** What to do; null if the message says all. */
    readonly fix: string | null;
    /** Why the run refused a decision; absent for any other error. */
    readonly reason?: string;
  };
}

export const errorBody: z.ZodType<ErrorBody> = z
  .object({
    error: z.object({
      code: z.string().describe('stable; programs can rely on it'),
      message: z.string(),
      fix: z.string().nullable().describe('what to do; null if the message says all'),
      reason: z.string().exactOptional().describe('why the run refused a decision'),
    }),
  })
  .meta({ id: 'Error' });

/** The codes of refusals by the server itself, beside those of `PerdureError`. */
type HttpErrorCode =
  | 'forbidden'
  | 'host'
  | 'model_not_found'
  | 'no_keys'
  | 'no_request'
  | 'not_ended'
  | 'not_found'
  | 'origin'
  | 'rate_limited'
  | 'too_large'
  | 'unauthorized'
  | 'unexpected'
  | 'unsupported';

type Status = 400 | 401 | 403 | 404 | 405 | 409 | 410 | 413 | 415 | 422 | 429 | 500 | 503 | 504;

interface HttpErrorOptions extends ErrorOptions {
  readonly fix?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request that the server refuses. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly status: Status;
  readonly code: HttpErrorCode | 'input' | 'no_run';
  readonly fix: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: Status,
    code: HttpError['code'],
    message: string,
    { fix, headers = {}, ...options }: HttpErrorOptions = {},
  ) {
    super(message, options);
    this.status = status;
    this.code = code;
    this.fix = fix ?? null;
    this.headers = headers;
  }
}

/** An answer about an error: what the request gets, in the form of its interface. */
export interface ErrorAnswer {
  readonly status: Status;
  readonly body: ErrorBody;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether it hides what the error says, which is for the log of the server. */
  readonly isHidden: boolean;
}

/** Seconds after which a request may be tried again. */
const RETRY_AFTER = 2;

/**
 * Returns the answer about an error. An error that is not meant for callers is only named: its message may
 * hold data of others, or say where Temporal and the stores are. `runnable`: makes its commands runnable where the
 * caller is; by default, in a project.
 */
export function errorAnswer(
  error: unknown,
  runnable: Runnable = (text) => withProgram(text),
): ErrorAnswer {
  const found = answerTo(error);
  const { error: told } = found.body;
  const shown = (text: string): string => printable(redactMessage(runnable(text)));
  const texts = { message: shown(told.message), fix: told.fix && shown(told.fix) };
  return { ...found, body: { error: { ...told, ...texts } } };
}

function answerTo(error: unknown): ErrorAnswer {
  if (error instanceof HttpError) {
    const { status, code, message, fix, headers } = error;
    return answer(status, { code, message, fix }, headers);
  }
  if (NoServerError.isInstance(error)) return retryable('no_server', NO_SERVER);
  if (!PerdureError.isInstance(error)) {
    return isUnanswered(error) ? retryable('no_server', NO_SERVER) : hidden('unexpected');
  }
  const { code } = error;
  const told = { code, ...withFix(error.message) };
  if (NoRunError.isInstance(error)) return answer(404, told);
  if (InputError.isInstance(error)) return answer(400, told);
  if (IdTakenError.isInstance(error)) return answer(409, told, NO_RETRY);
  if (RefusedError.isInstance(error)) {
    const { reason } = error;
    const refused = { ...told, code: (reason && REFUSAL_CODES[reason]) ?? code };
    // The code says it all.
    const isNamed = reason === null || reason === 'run_ended';
    return answer(409, isNamed ? refused : { ...refused, reason }, NO_RETRY);
  }
  if (NotDeliveredError.isInstance(error)) return retryable(code, undelivered(error));
  if (ResultLostError.isInstance(error)) return answer(410, told);
  if (UnreadableError.isInstance(error)) return answer(422, told);
  return hidden(code);
}

const NO_SERVER = 'the Temporal server does not answer';

/** Why a worker did not answer. */
const OF_WORKER = {
  missing: 'no worker is running',
  silent: 'the worker does not answer',
} as const;

/** Says why there was no answer, without the address and the task queue. */
function undelivered({ worker, mayArrive }: NotDeliveredError): string {
  const why = worker === null ? 'the run did not answer' : OF_WORKER[worker];
  return mayArrive ? `${why}; what was sent may still take effect` : why;
}

/** Returns the answer about an error that only the log describes. */
function hidden(code: string): ErrorAnswer {
  const message = 'the server failed on this request; its log has the error';
  return { ...answer(500, { code, message, fix: null }), isHidden: true };
}

/** Clients of OpenAI repeat requests after these statuses; every request here is safe to repeat. */
const NO_RETRY = { 'x-should-retry': 'false' };

function retryable(code: string, message: string): ErrorAnswer {
  const headers = { 'retry-after': String(RETRY_AFTER), 'x-should-retry': 'true' };
  const fix = 'repeat the request; it is safe to repeat';
  return { ...answer(503, { code, message, fix }, headers), isHidden: true };
}

function answer(
  status: Status,
  error: ErrorBody['error'],
  headers: Readonly<Record<string, string>> = {},
): ErrorAnswer {
  return { status, body: { error }, headers, isHidden: false };
}

/** A quoted value, which ends at its quote or where it was cut, or code. */
const QUOTED = /"(?:[^"\\…]|\\.)*["…]|`[^`]*`/g;

/** Splits a message of the form `field: expected X, got Y; fix`, and never inside of a quoted value. */
export function withFix(text: string): { readonly message: string; readonly fix: string | null } {
  const words = text.replaceAll(QUOTED, (value) => '_'.repeat(value.length));
  const at = text.includes('\n') ? -1 : words.lastIndexOf('; ');
  if (at === -1) return { message: text, fix: null };
  return { message: text.slice(0, at), fix: text.slice(at + 2) };
}

/** Returns the refusal of a path that does not exist, or not with this method, with those that do. */
export function noRoute(
  routes: readonly { readonly method: string; readonly path: string }[],
  { method, path }: { readonly method: string; readonly path: string },
): HttpError {
  const fix = 'GET /v1/openapi.json lists what there is';
  const real = routes.filter((route) => !route.path.includes('*'));
  const found = real.filter((route) => patternOf(route.path).test(path));
  const methods = [...new Set(found.map((route) => route.method))].toSorted();
  if (methods.length > 0) {
    const expected = methods.join(' or ');
    const message = `method: expected ${expected} for ${shorten(path, MAX_PATH)}, got ${method}`;
    const headers = { allow: methods.join(', ') };
    return new HttpError(405, 'unsupported', message, { fix, headers });
  }
  // The parts of a pattern that are names get those of the path.
  const parts = path.split('/').slice(0, MAX_PARTS);
  if (parts.at(-1) === '') parts.pop();
  const paths = real.map((route) => {
    const names = route.path.split('/');
    return names.map((name, at) => (name.startsWith(':') ? (parts[at] ?? name) : name)).join('/');
  });
  const meant = likelyMeant(
    parts.join('/'),
    [...new Set(paths)].filter((one) => one.length > 1),
  );
  const message = `path: there is no ${method} ${shorten(path, MAX_PATH)}`;
  return new HttpError(404, 'not_found', message, {
    fix: requestsInstead(path) ?? fix + pathHint(meant),
  });
}

/** Returns what lists the requests of a run, for the path of a list that does not exist; undefined for any other. */
function requestsInstead(path: string): string | undefined {
  const [, run] = /^(\/v1\/runs\/[^/]{1,200})\/requests\/?$/.exec(path) ?? [];
  return run && `the open requests of the run are in \`pending\` of GET ${run}`;
}

/** Names the path that may be meant, at the end and without a mark behind it, so that it can be copied. */
function pathHint(meant: string | undefined): string {
  return meant === undefined || meant.includes(':') ? '' : `; did you mean this path? ${meant}`;
}

/** Returns what the paths of a route look like. */
function patternOf(route: string): RegExp {
  return new RegExp(`^${route.replaceAll('.', String.raw`\.`).replaceAll(/:\w+/g, '[^/]+')}$`);
}

/** How much of a path is shown, and the most parts that a path has. */
const [MAX_PATH, MAX_PARTS] = [200, 10];
