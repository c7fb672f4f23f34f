import type { Client } from '@temporalio/client';
import type { StreamEvent } from '../../live/stream-events.js';
import type { CliContext } from '../context.js';

/** Tells what is said in a run from now on, as far as its workers let others read along; never rejects. */
export async function readAlong(
  { home, env }: Pick<CliContext, 'home' | 'env'>,
  client: Client,
  {
    id,
    signal,
    hear,
  }: {
    readonly id: string;
    readonly signal: AbortSignal;
    readonly hear: (event: StreamEvent) => void;
  },
): Promise<void> {
  try {
    const [{ createFeeds }, { liveWorkers }, { liveHostsOf }] = await Promise.all([
      import('../../live/feeds.js'),
      import('../../live/live-workers.js'),
      import('../../live/reachable.js'),
    ]);
    const feeds = createFeeds(client, {
      sources: [liveWorkers(home, { hosts: liveHostsOf(env) })],
    });
    for await (const event of feeds.read(id, { after: 'now', signal })) hear(event);
  } catch {
    // Whoever follows the run itself tells what is wrong.
  }
}
