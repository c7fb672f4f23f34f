import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { encryptionCodec } from '../../src/encryption/payload-codec.js';
import type { LiveAttempt } from '../../src/live/attempts.js';
import { startHttpServer } from '../../src/live/http-server.js';
import { createLiveHub } from '../../src/live/hub.js';
import { resolveLiveOptions } from '../../src/live/live-options.js';
import { deltasRoute } from '../../src/live/live-server.js';
import { announce, liveWorkers } from '../../src/live/live-workers.js';
import { openedLine } from '../../src/live/sealed-lines.js';
import { createStreamMerger } from '../../src/live/run-stream.js';
import {
  BEGINNING,
  type StreamEntry,
  type StreamEvent,
  createStreamCursor,
} from '../../src/live/stream.js';

const attempt: LiveAttempt = {
  segment: 's',
  activity: '1',
  attempt: 1,
  turn: 1,
  step: 1,
  node: { name: 'sort', item: 2, reply: 1 },
};
const place = { turn: 1, node: 'sort', item: 2, attempt: 1 };

/** A merger whose history shows that the function of a node has begun. */
function openMerger(): ReturnType<typeof createStreamMerger> & { entries: StreamEntry[] } {
  const entries: StreamEntry[] = [];
  const merger = createStreamMerger((added) => void entries.push(...added));
  merger.addEvent({
    runId: 's',
    event: {
      id: 1,
      at: 0,
      type: 'scheduled',
      activity: 'runTool',
      activityId: '1',
      input: {},
    } as never,
    steps: [],
  });
  return Object.assign(merger, { entries });
}

function readAll({ entries, kept }: ReturnType<typeof openMerger>): readonly StreamEvent[] {
  const cursor = createStreamCursor(BEGINNING, kept);
  return entries.flatMap((entry) => cursor.advance(entry));
}

test('replies to a node reach another process with their places, and void ones are void', async () => {
  const home = await mkdtemp(join(tmpdir(), 'perdure-live-'));
  const hub = createLiveHub();
  const server = await startHttpServer(resolveLiveOptions({}, {}), { deltas: deltasRoute(hub) });
  const queue = { namespace: 'n', taskQueue: 'q' };
  const process = { pid: globalThis.process.pid, host: hostname() };
  const withdraw = await announce(home, { ...queue, ...process, url: server.url, token: '' });
  const over = new AbortController();
  const merger = openMerger();
  liveWorkers(home)(
    { id: 'run', ...queue },
    {
      batch: (batch) => merger.addDeltas(batch),
      unreachable: () => undefined,
      signal: over.signal,
    },
  );
  const first = hub.begin('run', attempt);
  first.push({ kind: 'text', text: 'letter' });
  await vi.waitFor(() => expect(readAll(merger)).toHaveLength(1), { timeout: 20_000 });
  first.end({ isVoid: true });
  await vi.waitFor(() => expect(readAll(merger)).toHaveLength(2), { timeout: 20_000 });
  const second = hub.begin('run', { ...attempt, node: { name: 'sort', item: 2, reply: 2 } });
  second.push({ kind: 'text', text: 'bill' });
  await vi.waitFor(() => expect(readAll(merger)).toHaveLength(3), { timeout: 20_000 });
  over.abort();
  await withdraw();
  await server.close();
  await rm(home, { recursive: true });
  expect(readAll(merger)).toEqual([
    {
      ...place,
      type: 'node-delta',
      reply: 1,
      kind: 'text',
      text: 'letter',
      offset: 0,
      position: '',
    },
    { ...place, type: 'node-superseded', reply: 1, position: '' },
    { ...place, type: 'node-delta', reply: 2, kind: 'text', text: 'bill', offset: 0, position: '' },
  ]);
});

test('with a key, a worker sends nothing in clear, and only a reader with the key sees replies', async () => {
  const home = await mkdtemp(join(tmpdir(), 'perdure-live-'));
  const keys = { k1: randomBytes(32).toString('base64') };
  const codecs = [encryptionCodec({ keys, current: 'k1', required: true })];
  const hub = createLiveHub();
  const queue = { namespace: 'n', taskQueue: 'q' };
  const server = await startHttpServer(resolveLiveOptions({}, {}), {
    deltas: deltasRoute(hub, { codecs, namespace: 'n' }),
  });
  const process = { pid: globalThis.process.pid, host: hostname() };
  const withdraw = await announce(home, { ...queue, ...process, url: server.url, token: '' });
  const over = new AbortController();
  const readWith = (readerCodecs: typeof codecs) => {
    const merger = openMerger();
    const to = {
      batch: merger.addDeltas.bind(merger),
      unreachable: () => undefined,
      signal: over.signal,
    };
    liveWorkers(home, { codecs: readerCodecs })({ id: 'run', ...queue }, to);
    return merger;
  };
  const [keyed, keyless] = [readWith(codecs), readWith([])];
  const writer = hub.begin('run', attempt);
  writer.push({ kind: 'text', text: 'canary' });
  const raw = await fetch(`${server.url}/runs/run/deltas`, { signal: over.signal });
  const reader = raw.body?.getReader();
  let sent = '';
  while (!sent.includes('payload')) {
    sent += Buffer.from((await reader?.read())?.value ?? []).toString();
  }
  expect(sent).not.toContain('canary');
  expect(Buffer.from(JSON.parse(sent.trim()).payload, 'base64').toString()).not.toContain('canary');
  await vi.waitFor(() => expect(readAll(keyed)).toMatchObject([{ text: 'canary' }]), {
    timeout: 20_000,
  });
  expect(readAll(keyless)).toEqual([]);
  const of = { codecs, namespace: 'n', id: 'run' };
  expect(await openedLine('{"attempt":{},"deltas":[]}', of)).toBeNull();
  over.abort();
  await withdraw();
  await server.close();
  await rm(home, { recursive: true });
});

test('a reply that is void stays void, and an activity that ends without replies voids its own', () => {
  const merger = openMerger();
  const deltas = [{ kind: 'text', text: 'a', offset: 0 }] as const;
  const other = { ...attempt, node: { name: 'sort', item: 2, reply: 2 } };
  merger.addDeltas({ attempt, deltas });
  merger.addDeltas({ attempt: other, deltas });
  merger.addDeltas({ attempt, deltas: [], isVoid: true });
  // Another source sends it again.
  merger.addDeltas({ attempt, deltas });
  const failed = { id: 2, at: 0, type: 'failed', scheduled: 1, failure: {} } as never;
  merger.addEvent({ runId: 's', event: failed, steps: [] });
  merger.addDeltas({ attempt: other, deltas: [{ kind: 'text', text: 'late', offset: 1 }] });
  expect(readAll(merger).map((event) => Object.values(event).slice(0, 6))).toMatchObject([
    [1, 'sort', 2, 1, 1, 'text'],
    [1, 'sort', 2, 1, 2, 'text'],
    ['node-superseded', 1, 'sort', 2, 1, 1],
    ['node-superseded', 1, 'sort', 2, 1, 2],
  ]);
});
