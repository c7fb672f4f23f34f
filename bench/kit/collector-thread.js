// Loaded into every thread of a worker whose memory is measured: each thread has a heap of its own,
// and only code in it can have its garbage collected. JavaScript, for such a thread loads no other.
import { BroadcastChannel, isMainThread } from 'node:worker_threads';

if (!isMainThread) {
  const channel = new BroadcastChannel('garbage');
  channel.addEventListener('message', ({ data }) => {
    if (data !== 'collect') return;
    globalThis.gc();
    globalThis.gc();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
    channel.postMessage('collected');
  });
  channel.unref();
}
