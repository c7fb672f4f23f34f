import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { NoServerError } from '../core/errors.js';
import { isLoopback } from '../core/text/text.js';
import { connectionTarget } from '../temporal/connection.js';
import {
  CHANNEL_OPTIONS,
  GRPC,
  SEARCH_ATTRIBUTES,
  grpcCode,
  isUnanswered,
} from '../temporal/grpc.js';
import { msToTs } from '../temporal/sdk-internals.js';
import { LOOPBACK, RETENTION_HOURS, messageOf } from './server-settings.js';

/** The number of the type Keyword in Temporal's API. */
const KEYWORD = 2;
const POLL_MS = 50;
const APPEAR_LIMIT_MS = 30_000;
/** Each service of the server reads changed namespaces every 2 s, and refuses attributes that it does not know. */
const REFRESHED_MS = 2_500;

/**
 * Creates a namespace of the embedded server if needed, and sets its search attributes and
 * retention.
 */
export async function prepareNamespace(connection: Connection, namespace: string): Promise<void> {
  const retention = await retentionSeconds(connection, namespace);
  const expected = RETENTION_HOURS * 3600;
  if (retention === null) {
    await connection.workflowService
      .registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs(expected * 1000) })
      .catch(ignoreCode(GRPC.alreadyExists));
  } else if (retention < expected) {
    await connection.workflowService.updateNamespace({
      namespace,
      config: { workflowExecutionRetentionTtl: msToTs(expected * 1000) },
    });
  }
  // The services of the server discover a new namespace only after a while.
  await waitUntil(
    async () =>
      (await attributeTypes(connection, namespace).catch(ignoreCode(GRPC.notFound))) !== undefined,
    `namespace ${namespace} did not appear`,
  );
  await addSearchAttributes(connection, namespace);
}

/** Returns how many hours the server keeps closed runs; null if the namespace does not exist. */
export async function retentionHours(
  connection: Connection,
  namespace: string,
): Promise<number | null> {
  const seconds = await retentionSeconds(connection, namespace);
  return seconds === null ? null : seconds / 3600;
}

/** Returns perdure's search attributes that the namespace does not have. */
export async function missingSearchAttributes(
  connection: Connection,
  namespace: string,
): Promise<readonly string[]> {
  const types = await attributeTypes(connection, namespace);
  return SEARCH_ATTRIBUTES.filter((name) => types[name] !== KEYWORD);
}

async function attributeTypes(
  connection: Connection,
  namespace: string,
): Promise<Readonly<Record<string, unknown>>> {
  const list = await connection.operatorService.listSearchAttributes({ namespace });
  return list.customAttributes;
}

async function addSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const missing = await missingSearchAttributes(connection, namespace);
  if (missing.length > 0) {
    await connection.operatorService
      .addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
      })
      .catch(ignoreCode(GRPC.alreadyExists));
    await waitUntil(
      async () => (await missingSearchAttributes(connection, namespace)).length === 0,
      `search attributes ${missing.join(', ')} did not appear in namespace ${namespace}`,
    );
    await sleep(REFRESHED_MS);
  }
  // Another process may have added them a moment ago.
  const query = SEARCH_ATTRIBUTES.map((name) => `${name} = ''`).join(' OR ');
  await waitUntil(
    async () =>
      (await connection.workflowService
        .countWorkflowExecutions({ namespace, query })
        .catch(ignoreCode(GRPC.invalidArgument))) !== undefined,
    `search attributes cannot be used in namespace ${namespace}`,
  );
}

async function retentionSeconds(connection: Connection, namespace: string) {
  const description = await connection.workflowService
    .describeNamespace({ namespace })
    .catch(ignoreCode(GRPC.notFound));
  if (!description) return null;
  return Number(description.config?.workflowExecutionRetentionTtl?.seconds ?? 0);
}

/**
 * Returns a handler that ignores an error with this code: another command has already done the
 * step, or the object is missing. Other errors are rethrown.
 */
function ignoreCode(code: number): (error: unknown) => undefined {
  return (error) => {
    if (grpcCode(error) === code) return undefined;
    throw error;
  };
}

async function waitUntil(done: () => Promise<boolean>, problem: string): Promise<void> {
  const deadline = performance.now() + APPEAR_LIMIT_MS;
  while (!(await done())) {
    if (performance.now() > deadline)
      throw new NoServerError(`The embedded Temporal server: ${problem}.`);
    await sleep(POLL_MS);
  }
}

/** The result of a probe: the version of a Temporal server, or why none answers. */
export type Probe =
  | { readonly alive: true; readonly version: string | null }
  /** `isSilent`: nothing answers there; absent if something else is wrong. */
  | { readonly alive: false; readonly reason: string; readonly isSilent?: boolean };

interface ProbeOptions {
  readonly timeoutMs?: number;
  /**
   * The variables, and the profile that they name, with the API key and TLS settings; absent: none.
   */
  readonly env?: NodeJS.ProcessEnv;
}

const PROBE_TIMEOUT_MS = 3000;

/**
 * Queries the server's version over gRPC: an open port alone is not a Temporal server. Never
 * throws.
 */
export async function probeAddress(address: string, options: ProbeOptions = {}): Promise<Probe> {
  const timeoutMs = options.timeoutMs ?? PROBE_TIMEOUT_MS;
  if (isLoopbackAddress(address) && !(await isListening(address, timeoutMs))) {
    return { alive: false, reason: 'nothing listens there', isSilent: true };
  }
  try {
    return await withConnection(address, { ...options, timeoutMs }, async (connection) => {
      const info = await connection.workflowService.getSystemInfo({});
      return { alive: true, version: info.serverVersion || null };
    });
  } catch (error) {
    return { alive: false, reason: errorText(error), isSilent: isSilence(error) };
  }
}

/** Opens a connection for `use` and always closes it. */
export async function withConnection<T>(
  address: string,
  options: ProbeOptions,
  use: (connection: Connection) => Promise<T>,
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? PROBE_TIMEOUT_MS;
  const connection = await Connection.connect({
    ...(options.env ? connectionTarget({ address }, options.env).options : { address }),
    ...CHANNEL_OPTIONS,
    connectTimeout: timeoutMs,
  });
  try {
    return await connection.withDeadline(Date.now() + timeoutMs, () => use(connection));
  } finally {
    await connection.close();
  }
}

/** Returns whether an address is on the loopback interface. */
export function isLoopbackAddress(address: string): boolean {
  return /:\d+$/.test(address) && isLoopback(address.replace(/:\d+$/, ''));
}

/**
 * Returns whether a socket accepts connections. Unlike gRPC, it does not retry until a deadline.
 */
export function isListening(address: string, timeoutMs = PROBE_TIMEOUT_MS): Promise<boolean> {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const socket = connect({ host: host || LOOPBACK, port: Number(address.slice(colon + 1)) });
    const finish = (listening: boolean): void => {
      socket.destroy();
      resolve(listening);
    };
    socket.setTimeout(timeoutMs, () => finish(false));
    socket.once('connect', () => finish(true));
    socket.once('error', () => finish(false));
  });
}

/** Whether nothing has answered, as opposed to a server that refuses the connection. */
function isSilence(error: unknown): boolean {
  return isUnanswered(error) || messageOf(error).includes('Failed to connect before the deadline');
}

function errorText(error: unknown): string {
  const cause = error instanceof Error && error.cause ? `: ${messageOf(error.cause)}` : '';
  return messageOf(error) + cause;
}
