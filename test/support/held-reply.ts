import { inject } from 'vitest';
import { replyText } from '../../src/testing/replies.js';
import { type Stub, startStub } from '../../src/testing/stub-server.js';

/** A reply of several hundred characters, with some of more than one byte. */
export const HELD_TEXT = 'Grüße an 🦊 und 狐: '.repeat(20);

/**
 * Starts a model that holds its reply after 150 characters, at the barrier `first`, and at `second` if it
 * is asked again. `env`: the environment of a worker process that calls it and shows its replies live.
 */
export async function holdReplies({
  taskQueue,
  home,
}: {
  readonly taskQueue: string;
  readonly home: string;
}): Promise<{ readonly stub: Stub; readonly env: Readonly<Record<string, string>> }> {
  const stub = await startStub();
  stub.answer((request) => {
    const barrier = request.attempt === 1 ? 'first' : 'second';
    return replyText(HELD_TEXT, {
      sse: { charactersPerEvent: 5 },
      holdAfterEvent: { event: 30, barrier },
    });
  });
  const env = {
    ADDRESS: inject('temporalAddress'),
    QUEUE: taskQueue,
    OPENAI_BASE_URL: stub.baseUrl,
    PERDURE_HOME: home,
    LIVE: '1',
  };
  return { stub, env };
}
