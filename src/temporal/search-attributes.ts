import type { ConnectionLike } from '@temporalio/client';

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
