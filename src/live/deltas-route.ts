import { visibleJson } from '../core/text/hidden.js';
import type { LiveHub } from './hub.js';
import { liveResponse } from './live-response.js';
import type { Route } from './live-server.js';

/** What comes in on this worker, as JSON lines; for other processes, which put it in order. */
export function deltasRoute(hub: LiveHub): Route {
  return async (exchange) => {
    const live = liveResponse(exchange, {
      type: 'application/x-ndjson',
      signOfLife: '\n',
    });
    let wake: (() => void) | undefined;
    const watch = hub.watch(exchange.asked.id, () => wake?.());
    live.gone.addEventListener('abort', () => wake?.(), { once: true });
    try {
      while (!live.gone.aborted) {
        const woken = new Promise<void>((resolve) => (wake = resolve));
        const frames = watch.take();
        if (frames.length === 0) await woken;
        else await live.write(frames.map((frame) => `${visibleJson(frame)}\n`).join(''));
      }
    } catch (error) {
      if (!live.gone.aborted) throw error;
    } finally {
      watch.close();
    }
    return null;
  };
}
