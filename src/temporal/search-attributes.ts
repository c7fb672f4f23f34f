import type { ConnectionLike } from '@temporalio/client';

/** What perdure writes where the namespace has it. Names are for ever. */
export const SEARCH_ATTRIBUTES = ['AgentName', 'AgentStatus', 'AgentReason'] as const;

const LOOK_UP_MS = 1_000;

/**
 * Which of perdure's search attributes the namespace has, looked up once. Where that cannot be
 * learnt (no right to ask, an older server, no answer within a second) none is written, because a
 * missing one would hang every run; the next run asks again.
 */
export function createAttributeLookup(place: () => Place): () => Promise<readonly string[]> {
  let known: readonly string[] | undefined;
  return async () => {
    known ??= await lookUp(place());
    return known ?? [];
  };
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
