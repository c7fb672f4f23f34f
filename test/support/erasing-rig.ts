import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { expect } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { type PerdureClient, createClient } from '../../src/client.js';
import { defineConfig } from '../../src/config.js';
import { openStores } from '../../src/storage/file-stores.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createWorker } from '../../src/worker/create-worker.js';
import { sourceBundle } from './bundle.js';
import { testServer } from './temporal-server.js';

export const load = defineTool({
  name: 'load',
  description: 'Loads a large text.',
  input: z.object({ what: z.string() }),
  effect: 'read',
  execute: ({ what }) => `${what} ${'z'.repeat(400_000)}`,
});

/** Does what a message says: `load WORD`, `help WORD` through the agent `helper`, or `hold`. */
const model = {
  async call({ messages }: { readonly messages: readonly { role: string; text?: string }[] }) {
    const last = messages.at(-1);
    if (last?.role !== 'user') return replyText('Done.');
    if (last.text === 'hold') return replyCall('hold', {});
    const [, word, what = ''] = /(load|help) (\S+)/.exec(last.text ?? '') ?? [];
    if (word === 'help') return replyCall('helper', { message: `load ${what}` });
    return word === 'load' ? replyCall('load', { what }) : replyText('Hello.');
  },
};
/** The models of the agents: all use `m`. */
export const models = { m: model };

interface Started {
  readonly word: string;
  readonly agent?: string;
  readonly how?: 'load' | 'help';
  readonly tags?: readonly string[];
  readonly end?: boolean;
}

/** A server that deletes histories at once, a worker with these agents, and what tests of erasure look at. */
export interface ErasingRig {
  readonly address: string;
  readonly taskQueue: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly client: PerdureClient;
  readonly raw: Client;
  /** Starts an archived run that loads a large text with a word, and that has an artifact with it. */
  play(started: Started): Promise<string>;
  /** Closes a run, and waits until the server lists it as closed. */
  close(id: string): Promise<void>;
  /** Returns those of the runs that the server has. */
  onServer(...ids: readonly string[]): Promise<readonly string[]>;
  /** Returns the stored texts and archived histories that contain a word. */
  filesWith(word: string): Promise<readonly string[]>;
  end(): Promise<void>;
}

export async function createErasingRig(agents: readonly Agent[]): Promise<ErasingRig> {
  // The server deletes a history once it has noted that the tasks of its end are done, by default every 30 s.
  const { address, stop } = await testServer(
    ['transfer', 'visibility'].map((queue) => `history.${queue}ProcessorUpdateAckInterval="500ms"`),
  );
  const home = await mkdtemp(join(tmpdir(), 'perdure-erase-'));
  const env = { TEMPORAL_ADDRESS: address, PERDURE_HOME: home };
  const taskQueue = `erase-${randomUUID()}`;
  const client = await createClient({ env, taskQueue, by: 'ann' });
  const connection = await Connection.connect({ address });
  const raw = new Client({ connection });
  const worker = await createWorker({
    config: defineConfig({ agents, models }),
    address,
    taskQueue,
    env,
    workflowBundle: await sourceBundle(),
    shutdownGrace: 200,
  });
  const rig: ErasingRig = {
    address,
    taskQueue,
    home,
    env,
    client,
    raw,
    async play({ word, agent = 'desk', how = 'load', tags = [], end = true }) {
      const { id } = await client.start(agent, {
        id: `${agent}-${randomUUID()}`,
        open: true,
        message: `${how} ${word}`,
        tags,
        artifacts: { orders: { text: `${word} ${'o'.repeat(300_000)}` } },
      });
      await client.result(id, { turn: 1 });
      if (end) await rig.close(id);
      return id;
    },
    async close(id) {
      await client.close(id);
      const closedAt = async () => (await client.list({ idPrefix: id })).rows[0]?.closedAt;
      await expect.poll(closedAt, { timeout: 20_000 }).toBeTypeOf('string');
    },
    async onServer(...ids) {
      const described = ids.map(async (id) => await raw.workflow.getHandle(id).describe());
      const found = await Promise.allSettled(described);
      return ids.filter((_, index) => found[index]?.status === 'fulfilled');
    },
    filesWith: async (word) => await filesWith(word, home),
    async end() {
      await client.disconnect();
      await worker.shutdown();
      await connection.close();
      await stop();
      await rm(home, { recursive: true, force: true });
    },
  };
  return rig;
}

async function filesWith(word: string, home: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const folder of ['blobs', 'archive']) {
    const entries = await readdir(join(home, folder), { recursive: true, withFileTypes: true });
    for (const entry of entries) {
      if (!entry.isFile()) continue;
      const file = join(entry.parentPath, entry.name);
      const bytes = await readFile(file);
      // Payloads of archived histories are in base64.
      const plain = bytes
        .toString()
        .replaceAll(/"data":\s*"([^"]+)"/g, (_, data: string) =>
          Buffer.from(data, 'base64').toString(),
        );
      if (plain.includes(word)) found.push(file);
    }
  }
  return found;
}

/** Returns the stores of a rig, whose archive can erase. */
export function erasableStores({ home }: Pick<ErasingRig, 'home'>) {
  const { archive, blobs } = openStores(home);
  const { erasure } = archive;
  if (erasure === undefined) throw new Error('the archive has no erasure');
  return { archive, blobs, erasure };
}
