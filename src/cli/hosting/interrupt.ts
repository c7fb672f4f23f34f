import { EXIT } from '../exit-codes.js';

/**
 * Returns a signal that aborts on the first interrupt (Ctrl-C, SIGTERM); a second one ends the
 * process at once. `dev` starts its worker with an IPC channel. When that channel closes, `dev` has
 * ended, and the worker also ends.
 */
export function catchInterrupt(): AbortSignal {
  const caught = new AbortController();
  const onInterrupt = (): void => {
    // A second interrupt means that the user does not want to wait.
    if (caught.signal.aborted) process.exit(EXIT.interrupted);
    caught.abort();
  };
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onInterrupt);
  process.on('disconnect', onInterrupt);
  // The channel may have closed before the listener was added.
  const hadChannel = 'connected' in process;
  if (hadChannel && !process.connected) caught.abort();
  return caught.signal;
}
