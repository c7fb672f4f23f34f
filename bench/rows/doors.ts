import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { openingMessage, type Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';

const SERVER = new URL('../subject/server.ts', import.meta.url);
/** Eight replies, each of which begins with the time of its first token. */
const SPOKEN: Script = { name: 'spoken', steps: 7, tools: ['work'], bytes: 100 };
/** The time as the first delta of a reply, in the form of each door. */
const TIME = /"(?:text|delta)":"(\d{13}\.\d+) "/g;

/** Measures an HTTP server in a process of its own, beside the worker. */
export async function measureDoors(bench: Bench): Promise<readonly Row[]> {
  const worker = await bench.worker('perdure', { LIVE: '1' });
  const port = await freePort();
  const server = await bench.worker(SERVER, { QUEUE: worker.queue, PORT: String(port) });
  const url = `http://127.0.0.1:${port}`;
  const rows: Row[] = [];
  for (const [door, start] of Object.entries(DOORS)) {
    rows.push(await firstToken(door, () => start(url), bench.quick ? 1 : 3));
  }
  await server.end();
  await worker.end();
  return rows;
}

/** Starts a run at each door, and returns the response that streams it. */
const DOORS: Readonly<Record<string, (url: string) => Promise<Response>>> = {
  async http(url) {
    const id = randomUUID();
    await post(`${url}/v1/runs`, { agent: 'speaking', id, message: openingMessage(SPOKEN) });
    return await fetch(`${url}/v1/runs/${id}/events`);
  },
  openai: (url) =>
    post(`${url}/v1/responses`, { model: 'speaking', input: openingMessage(SPOKEN), stream: true }),
  'ui-stream': (url) => {
    const parts = [{ type: 'text', text: openingMessage(SPOKEN) }];
    const messages = [{ id: randomUUID(), role: 'user', parts }];
    const chat = { id: randomUUID(), trigger: 'submit-message', messages };
    return post(`${url}/v1/ui/speaking`, chat);
  },
  'ag-ui': (url) => {
    const messages = [{ id: randomUUID(), role: 'user', content: openingMessage(SPOKEN) }];
    const thread = { threadId: randomUUID(), runId: randomUUID(), messages };
    return post(`${url}/v1/ag-ui/speaking`, thread);
  },
};

/** By the clock that all three processes share. */
async function firstToken(
  door: string,
  start: () => Promise<Response>,
  repeats: number,
): Promise<Row> {
  const samples: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    const seen = new Set<string>();
    const { body } = await start();
    for await (const chunk of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      const now = performance.timeOrigin + performance.now();
      for (const [, time = ''] of chunk.matchAll(TIME)) {
        if (!seen.has(time)) samples.push(now - Number(time));
        seen.add(time);
      }
    }
  }
  return {
    name: `doors/first-token/${door}`,
    what: `first token through the door \`${door}\` after it reached the worker`,
    value: median(samples),
    unit: 'ms',
    bar: { atMost: 10 },
    samples,
    detail: `${samples.length} replies`,
  };
}

async function post(url: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
