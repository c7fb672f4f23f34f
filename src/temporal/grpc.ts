import { hostname } from 'node:os';
import {
  type Client,
  type ConnectionLike,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  isGrpcServiceError,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';
import { NoServerError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';

/** The gRPC status codes of a server's refusals. */
export const GRPC = {
  canceled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unimplemented: 12,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/** The codes if a server has not answered; it may have done what was requested. */
const NO_ANSWER: readonly number[] = [GRPC.deadlineExceeded, GRPC.unavailable];

/**
 * Returns the gRPC status code of an error, or of its cause, since the SDK wraps some errors. Null if
 * neither has one.
 */
export function grpcCode(error: unknown): number | null {
  if (isGrpcServiceError(error)) return error.code;
  const cause = error instanceof Error ? error.cause : undefined;
  return isGrpcServiceError(cause) ? cause.code : null;
}

/** Returns whether a call failed because the server did not answer. */
export function isUnanswered(error: unknown): boolean {
  const code = grpcCode(error);
  return code !== null && NO_ANSWER.includes(code);
}

/**
 * Returns the error for a server that does not answer: its address, what was tried, and the fix.
 * `tried`: a method's name.
 */
export function unreachable(address: string, cause: unknown, tried?: string): NoServerError {
  const what = tried === undefined ? '' : `${tried}: `;
  return new NoServerError(
    `${what}no Temporal server answers at ${address} (${reasonOf(cause)}). Start it, or name ` +
      'another one with `address` or TEMPORAL_ADDRESS.',
    { cause },
  );
}

const NO_REASON = /^No connection established\. Last error: null/;

function reasonOf(error: unknown): string {
  const inner = error instanceof Error && isGrpcServiceError(error.cause) ? error.cause : error;
  // While gRPC waits before it connects again, it no longer says why it could not connect.
  if (isGrpcServiceError(inner) && NO_REASON.test(inner.details)) return 'it accepts no connection';
  if (isGrpcServiceError(inner)) return inner.details || inner.message;
  return inner instanceof Error ? inner.message : String(inner);
}

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];
type Call = ReturnType<Parameters<Interceptor>[1]>;

const retryFailed: Interceptor = makeGrpcRetryInterceptor(defaultGrpcRetryOptions());

/**
 * Repeats failed calls as the SDK does, until the connection is closed. The SDK repeats a call in a timer,
 * where an exception ends the process: gRPC throws one for a closed connection. Here the call fails.
 */
const retryUntilClosed: Interceptor = (options, nextCall) => {
  let isFirst = true;
  return retryFailed(options, (next) => {
    try {
      return nextCall(next);
    } catch (error) {
      if (isFirst) throw error;
      return failedCall(error);
    } finally {
      isFirst = false;
    }
  });
};

const ignore = (): void => undefined;

/** Returns a call that fails as soon as it starts. */
function failedCall(error: unknown): Call {
  return {
    start: (metadata, listener) =>
      listener?.onReceiveStatus?.({ code: GRPC.canceled, details: reasonOf(error), metadata }),
    cancelWithStatus: ignore,
    getPeer: () => '',
    sendMessageWithContext: ignore,
    sendMessage: ignore,
    startRead: ignore,
    halfClose: ignore,
    getAuthContext: () => null,
  };
}

/** For each connection of a client. */
export const CHANNEL_OPTIONS = {
  /** A page of a history may exceed gRPC's default limit of 4 MiB; the run could then not be read. */
  channelArgs: { 'grpc.max_receive_message_length': 128 * 1024 * 1024 },
  interceptors: [retryUntilClosed],
};

/** Returns the address of a client's server. */
export function serverAddress({ connection }: Pick<Client, 'connection'>): string {
  const options: unknown = 'options' in connection ? connection.options : undefined;
  const address = isObject(options) ? options['address'] : undefined;
  return typeof address === 'string' ? address : 'the address of its connection';
}

/** A process, by its number and the name of its machine. */
interface ProcessPlace {
  readonly pid: number;
  readonly host: string;
}

/**
 * Returns whether a process of this machine has ended. False for other machines, and for a process of
 * another user, unless the process ran as this user: its number then belongs to another process.
 */
export function hasExited(
  { pid, host }: ProcessPlace,
  { ranAsThisUser }: { readonly ranAsThisUser: boolean },
): boolean {
  if (host !== hostname()) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return ranAsThisUser || (error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

/** The search attributes that perdure writes if the namespace has them. The names are permanent. */
export const SEARCH_ATTRIBUTES = ['AgentName', 'AgentStatus', 'AgentReason'] as const;

const LOOK_UP_MS = 1_000;

/**
 * Returns a function that looks up, once, which of perdure's search attributes the namespace has.
 * If the lookup fails (no permission, an older server, no answer within a second), none is written,
 * because a missing attribute would hang every run. The next run looks them up again.
 */
export function createAttributeLookup(place: () => Place): () => Promise<readonly string[]> {
  let known: readonly string[] | undefined;
  return async () => {
    known ??= await lookUp(place());
    return known ?? [];
  };
}

const complete = new WeakMap<ConnectionLike, Map<string, Promise<boolean>>>();

/**
 * Returns whether a client's namespace has all of perdure's search attributes; looked up once. False
 * if the lookup fails.
 */
export async function hasSearchAttributes({
  connection,
  options: { namespace },
}: Pick<Client, 'connection' | 'options'>): Promise<boolean> {
  const known = complete.get(connection) ?? new Map<string, Promise<boolean>>();
  complete.set(connection, known);
  const found =
    known.get(namespace) ??
    lookUp({ connection, namespace }).then((names) => names?.length === SEARCH_ATTRIBUTES.length);
  known.set(namespace, found);
  return await found;
}

interface Place {
  readonly connection: ConnectionLike;
  readonly namespace: string;
}

async function lookUp({ connection, namespace }: Place): Promise<readonly string[] | undefined> {
  try {
    const { customAttributes } = await connection.withDeadline(Date.now() + LOOK_UP_MS, () =>
      connection.operatorService.listSearchAttributes({ namespace }),
    );
    return SEARCH_ATTRIBUTES.filter((name) => name in customAttributes);
  } catch {
    return undefined;
  }
}
