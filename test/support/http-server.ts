import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { portOf } from './port-of.js';

/** An HTTP server for a test, on its own port. */
export interface HttpServer {
  readonly url: string;
  /** The number of requests so far. */
  readonly requests: number;
  close(): Promise<void>;
}

export async function httpServer(answer: RequestListener): Promise<HttpServer> {
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    get requests() {
      return requests;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
