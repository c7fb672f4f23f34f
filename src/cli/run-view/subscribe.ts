import type { Client } from '@temporalio/client';
import type { StreamEvent } from '../../live/stream.js';
import type { CliContext } from '../context.js';

/** Subscribes to the live stream of a run, as far as its workers serve it. Never throws. */
export async function subscribe(
  { home, env }: Pick<CliContext, 'home' | 'env'>,
  client: Client,
  {
    id,
    signal,
    onEvent,
    unreachable,
  }: {
    readonly id: string;
    readonly signal: AbortSignal;
    readonly onEvent: (event: StreamEvent) => void;
    readonly unreachable: (why: string) => void;
  },
): Promise<void> {
  try {
    const [{ createRunStreams }, { liveWorkers, readLiveHosts }] = await Promise.all([
      import('../../live/run-streams.js'),
      import('../../live/live-workers.js'),
    ]);
    const { payloadCodecs: codecs } = client.options.loadedDataConverter;
    const feeds = createRunStreams(client, {
      sources: [liveWorkers(home, { hosts: readLiveHosts(env), codecs })],
      unreachable,
    });
    for await (const event of feeds.read(id, { after: 'now', signal })) onEvent(event);
  } catch {
    // The caller follows the run itself and reports errors.
  }
}
