import type { Client } from '@temporalio/client';
import { expect, vi } from 'vitest';
import { listPollers } from '../../src/temporal/pollers.js';

/**
 * Resolves when the server lists this worker. A running worker's first poll may not have arrived
 * yet.
 */
export async function waitUntilPolling(
  { connection, options: { namespace } }: Client,
  { taskQueue, identity }: { readonly taskQueue: string; readonly identity: string },
): Promise<void> {
  await vi.waitFor(
    async () => {
      const pollers = await listPollers(connection, { namespace, taskQueue });
      expect(pollers.map((poller) => poller.identity)).toContain(identity);
    },
    { timeout: 20_000, interval: 50 },
  );
}
