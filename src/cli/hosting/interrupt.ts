import { EXIT } from '../exit-codes.js';

/**
 * From now on an interrupt (Ctrl-C, SIGTERM) is the command's to handle: the signal aborts at the
 * first one, the second ends the process at once. `dev` starts workers with a channel to it; when
 * that is cut, `dev` is gone, and its worker shall not stay behind.
 */
export function catchInterrupt(): AbortSignal {
  const caught = new AbortController();
  const onInterrupt = (): void => {
    // Somebody who asks twice does not want to wait for anything.
    if (caught.signal.aborted) process.exit(EXIT.interrupted);
    caught.abort();
  };
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onInterrupt);
  process.on('disconnect', onInterrupt);
  // It may have been cut before anybody listened.
  const hadChannel = 'connected' in process;
  if (hadChannel && !process.connected) caught.abort();
  return caught.signal;
}
