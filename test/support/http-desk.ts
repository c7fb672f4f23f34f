import { randomUUID } from 'node:crypto';
import { vi } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { type ServeOptions, defineConfig } from '../../src/config.js';
import type { Request as PendingRequest } from '../../src/core/transcript/request.js';
import { createServer, listen } from '../../src/http.js';
import type { Model } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { WorkerOptions } from '../../src/worker/options.js';
import { clientOf } from './clerk.js';
import { createRig, type Rig } from './rig.js';
import { createStreamingAgent, type StreamingAgent } from './streaming-agent.js';

/** The keys of the principals; each is its name, repeated until it is long enough. */
export function keyOf(name: string): string {
  return `${name}-`.repeat(24).slice(0, 24);
}

/** An HTTP server in front of a worker with a desk that pays, and an agent that streams. */
export interface HttpDesk {
  readonly rig: Rig;
  readonly client: PerdureClient;
  readonly url: string;
  /** What was paid, in the order of the payments. */
  readonly paid: readonly number[];
  readonly talker: StreamingAgent;
  /** Sends a request with the key of a principal; `null`: without a key. */
  send(path: string, options?: SendOptions): Promise<Answer>;
  /** Starts a run of the desk that asks for this payment, and returns its request. */
  asking(euros: number, by?: string): Promise<{ id: string; request: PendingRequest }>;
  close(): Promise<void>;
}

interface SendOptions {
  readonly as?: string | null;
  /** Sent as JSON, by POST. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads any field of an answer
  readonly body: any;
}

/** Pays what the message says; answers any other message with its own text. */
const model: Model = {
  async call({ messages }) {
    const last = messages.at(-1);
    if (last?.role === 'tool') return replyText(`done: ${last.text}`);
    const [, euros] = /^(?:pay |refund .*"euros":)(\d+)\}?$/.exec(last?.text ?? '') ?? [];
    return euros === undefined
      ? replyText(`you said: ${last?.text}`)
      : replyCall('pay', { euros: Number(euros) });
  },
};

/**
 * Starts the desk. `serve`: who may use it; the environment has the keys of `names`. With `mayDecide`, the
 * worker checks every decision before it counts.
 */
export async function openHttpDesk(
  names: readonly string[],
  serve: ServeOptions = {},
  {
    agents: more = [],
    ...rest
  }: { readonly agents?: readonly Agent[] } & Pick<
    WorkerOptions,
    'mayDecide' | 'interceptors'
  > = {},
): Promise<HttpDesk> {
  const rig = await createRig();
  const paid: number[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'pays',
    input: z.object({ euros: z.number() }),
    effect: 'keyed',
    describe: ({ euros }) => `pay ${euros} €`,
    execute: async ({ euros }) => {
      paid.push(euros);
      return `paid ${euros}`;
    },
  });
  const talker = createStreamingAgent();
  const agents = [
    defineAgent({
      name: 'desk',
      description: 'pays',
      instructions: 'x',
      model: 'm',
      tools: [pay],
      rules: [{ tool: 'pay', then: 'ask' }],
    }),
    defineAgent({ name: 'other', instructions: 'x', model: 'm' }),
    talker.agent,
    ...more,
  ];
  const models = { m: model, talk: talker.model };
  await rig.worker(agents, { models, live: {}, ...rest });
  const client = await clientOf(rig);
  const env = { PERDURE_SERVE_KEYS: names.map((name) => `${name}:${keyOf(name)}`).join(',') };
  const server = await createServer({
    client,
    config: defineConfig({ agents, models, serve }),
    env,
    log: (line) => void failures.push(line),
  });
  const failures: string[] = [];
  const listening = await listen(server);
  const { url } = listening;
  const send: HttpDesk['send'] = async (path, options = {}) => {
    const { as = names[0] ?? null, body, method = body === undefined ? 'GET' : 'POST' } = options;
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(as !== null && { authorization: `Bearer ${keyOf(as)}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? null : JSON.parse(text),
    };
  };
  return {
    rig,
    client,
    url,
    paid,
    talker,
    send,
    async asking(euros, by = names[0] ?? 'local') {
      const { id } = await client.start('desk', {
        message: `pay ${euros}`,
        id: `pay-${randomUUID()}`,
        by,
      });
      const request = await vi.waitFor(
        async () => {
          const [found] = (await client.status(id)).pending;
          if (found === undefined) throw new Error('no request yet');
          return found;
        },
        { timeout: 20_000, interval: 50 },
      );
      return { id, request };
    },
    async close() {
      await listening.close();
      await client.disconnect();
      await rig.close();
      if (failures.length > 0) throw new Error(`the server failed: ${failures.join('\n')}`);
    },
  };
}
