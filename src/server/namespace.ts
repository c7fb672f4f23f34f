import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from '@temporalio/client';
import { GRPC, grpcCode } from '../temporal/grpc.js';
import { msToTs } from '../temporal/sdk-internals.js';
import { SEARCH_ATTRIBUTES } from '../temporal/search-attributes.js';
import { RETENTION_HOURS } from './server-settings.js';
import { NoServerError } from '../core/errors.js';

/** The number of the type Keyword in Temporal's API. */
const KEYWORD = 2;
const POLL_MS = 50;
const APPEAR_LIMIT_MS = 30_000;

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
  if (missing.length === 0) return;
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
