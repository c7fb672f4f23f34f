import type { NativeConnection } from '@temporalio/worker';

/** What perdure writes where the namespace has it. Names are for ever. */
export const SEARCH_ATTRIBUTES = ['AgentName', 'AgentStatus', 'AgentReason'] as const;

/**
 * Which of perdure's search attributes the namespace has, looked up once. Where that cannot be
 * learnt (no right to ask, an older server) none is written: a missing one would hang every run.
 */
export function searchAttributesOf(
  connection: NativeConnection,
  namespace: string,
): () => Promise<readonly string[]> {
  let known: Promise<readonly string[]> | undefined;
  return () => (known ??= lookUp(connection, namespace));
}

async function lookUp(connection: NativeConnection, namespace: string): Promise<readonly string[]> {
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({
      namespace,
    });
    return SEARCH_ATTRIBUTES.filter((name) => name in customAttributes);
  } catch {
    return [];
  }
}
