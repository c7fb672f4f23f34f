// Loaded into every thread of a worker whose memory is measured. Each thread has its own heap, and
// only code in that thread can collect its garbage. Written in JavaScript because such a thread
// loads nothing else.
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
