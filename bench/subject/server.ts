// perdure's HTTP server in its own process. `kit/child.ts` starts it.
import { defineConfig } from '../../src/config.js';
import { createServer, listen } from '../../src/http.js';
import { serveAsChild } from '../kit/child-side.js';
import { benchAgents } from './agents.js';

const { env } = process;
const server = await createServer({
  config: defineConfig({ agents: benchAgents({ ledgerUrl: '', tell: () => undefined }) }),
  address: env['ADDRESS'] ?? '',
  taskQueue: env['QUEUE'] ?? '',
  serve: { limits: { requestsPerMinute: 1_000_000, streams: 10_000 } },
  env,
});
const listening = await listen(server, { port: Number(env['PORT']) });
let end = (): void => undefined;
const stopped = new Promise<void>((resolve) => (end = resolve));
await serveAsChild({
  stopped,
  async shutdown() {
    await listening.close();
    await server.close();
    end();
  },
});
