import { BroadcastChannel } from 'node:worker_threads';

/**
 * Collects the garbage of this thread and of the one that runs workflow code. Needs
 * `collector-thread.js` and `--expose-gc`. Waits indefinitely if there is no such thread.
 */
export async function collectGarbage(): Promise<void> {
  const channel = new BroadcastChannel('garbage');
  const collected = new Promise((resolve) => {
    channel.addEventListener('message', resolve, { once: true });
  });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
  channel.postMessage('collect');
  await collected;
  channel.close();
  // Twice: what the first round finalizes, the second one frees.
  globalThis.gc?.();
  globalThis.gc?.();
}
