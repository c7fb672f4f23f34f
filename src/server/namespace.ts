import { setTimeout as pause } from 'node:timers/promises';
import { isGrpcServiceError, type Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { SEARCH_ATTRIBUTES } from '../temporal/search-attributes.js';
import { RETENTION_HOURS } from './server-settings.js';
import { NoServerError } from '../core/errors.js';

/** Status codes of gRPC. */
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
/** As Temporal's API numbers the types of search attributes. */
const KEYWORD = 2;
const POLL_MS = 50;
const SETTLE_LIMIT_MS = 30_000;

/** Gives a namespace of the embedded server its attributes and retention; makes it if need be. */
export async function prepareNamespace(connection: Connection, namespace: string): Promise<void> {
  const retention = await retentionSeconds(connection, namespace);
  const wanted = RETENTION_HOURS * 3600;
  if (retention === null) {
    await connection.workflowService
      .registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs(wanted * 1000) })
      .catch(ignoreCode(ALREADY_EXISTS));
  } else if (retention < wanted) {
    await connection.workflowService.updateNamespace({
      namespace,
      config: { workflowExecutionRetentionTtl: msToTs(wanted * 1000) },
    });
  }
  // The server's parts learn of a new namespace from time to time only.
  await until(
    async () =>
      (await attributeTypes(connection, namespace).catch(ignoreCode(NOT_FOUND))) !== undefined,
    `namespace ${namespace} does not appear`,
  );
  await addSearchAttributes(connection, namespace);
}

/** Hours for which closed runs are kept; null when the namespace does not exist. */
export async function retentionHours(
  connection: Connection,
  namespace: string,
): Promise<number | null> {
  const seconds = await retentionSeconds(connection, namespace);
  return seconds === null ? null : seconds / 3600;
}

/** Which of perdure's search attributes the namespace lacks. */
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
    .catch(ignoreCode(ALREADY_EXISTS));
  await until(
    async () => (await missingSearchAttributes(connection, namespace)).length === 0,
    `search attributes ${missing.join(', ')} do not appear in namespace ${namespace}`,
  );
}

async function retentionSeconds(connection: Connection, namespace: string) {
  const description = await connection.workflowService
    .describeNamespace({ namespace })
    .catch(ignoreCode(NOT_FOUND));
  if (!description) return null;
  return Number(description.config?.workflowExecutionRetentionTtl?.seconds ?? 0);
}

/** What another command has done in the meantime, or what is not there, is no error. */
function ignoreCode(code: number): (error: unknown) => undefined {
  return (error) => {
    const found: unknown = isGrpcServiceError(error) ? error.code : null;
    if (found === code) return undefined;
    throw error;
  };
}

async function until(done: () => Promise<boolean>, problem: string): Promise<void> {
  const deadline = Date.now() + SETTLE_LIMIT_MS;
  while (!(await done())) {
    if (Date.now() > deadline) throw new NoServerError(`The embedded Temporal server: ${problem}.`);
    await pause(POLL_MS);
  }
}
