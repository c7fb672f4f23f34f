import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { StreamEvent } from '../../src/live/stream.js';
import { clientOf } from '../support/clerk.js';
import { forgetSegments } from '../support/forget-run.js';
import { gate } from '../support/gate.js';
import { createListener, listen } from '../support/listener.js';
import { createRig, type Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';
import { openSse, request } from '../support/sse-reader.js';
import { createStreamingAgent } from '../support/streaming-agent.js';

let rig: Rig;
let client: PerdureClient;
let url: string;
const talker = createStreamingAgent();

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
  const worker = await rig.worker([talker.agent], { models: { talk: talker.model }, live: {} });
  url = worker.live?.url ?? '';
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

const eventsOf = (id: string): string => `${url}/runs/${encodeURIComponent(id)}/events`;

describe('GET /runs/:id/events', () => {
  test('has the same events as the client, and resumes where a connection broke', async () => {
    const [second, third] = [gate(), gate()];
    talker.on('line breaks', async ({ emit }) => {
      emit('first ');
      await second.wait();
      emit('second ');
      await third.wait();
      emit('third');
      return 'first second third';
    });
    const run = await client.start('talker', { message: 'line breaks', id: 'run/of lines' });
    const listener = createListener();
    const until = (text: string) => (): boolean => listener.partial === text;
    const before = await openSse(eventsOf(run.id));
    await listen(before.events, listener, until('first '));
    before.close();
    second.release();
    const { position = '' } = listener.events.at(-1) ?? {};
    const back = await openSse(eventsOf(run.id), { 'last-event-id': position });
    await listen(back.events, listener, until('first second '));
    back.close();
    third.release();
    const again = listener.events.at(-1)?.position ?? '';
    const last = await openSse(`${eventsOf(run.id)}?after=${encodeURIComponent(again)}`);
    await listen(last.events, listener);
    expect(listener.replies).toEqual(['first second third']);
    const durable = (events: readonly StreamEvent[]): readonly StreamEvent[] =>
      events.filter(({ type }) => type !== 'delta');
    const same = await listen(client.stream(run), createListener());
    expect(durable(listener.events)).toEqual(durable(same.events));
    // The run has ended, so the response stops a browser from reconnecting.
    const end = listener.events.at(-1)?.position ?? '';
    const over = await request(eventsOf(run.id), { 'last-event-id': end });
    expect(over.statusCode).toBe(204);
    over.resume();
  });

  test('says of a run that Temporal has deleted what the client says, with status 410', async () => {
    talker.on('be archived', async () => 'archived');
    const { id } = await client.start('talker', { message: 'be archived', archive: true });
    await client.result(id);
    rig.exempt('the test deletes it', id);
    const segments = await segmentsOf(rig.client, id);
    await forgetSegments(
      rig.client,
      id,
      segments.map(({ runId }) => runId),
    );
    const reading = listen(client.stream(id), createListener());
    const error: unknown = await reading.then(() => null).catch((thrown: unknown) => thrown);
    const said = error instanceof Error ? error.message : '';
    expect(said).toContain('the server has deleted run');
    const gone = await request(eventsOf(id));
    expect([gone.statusCode, JSON.parse(await textOf(gone))]).toEqual([410, { error: said }]);
  });

  test('does not wait for a reader that stalls, and sends it a gap', async () => {
    const word = 'x'.repeat(64 * 1024);
    const [begin, more] = [gate(), gate()];
    const deltas = 400;
    talker.on('slow', async ({ emit }) => {
      await begin.wait();
      emit('begins ');
      await more.wait();
      for (let count = 0; count < deltas; count += 1) {
        emit(word);
        // The pause separates the deltas; those that arrive at once are merged.
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return 'begins, and goes on';
    });
    const run = await client.start('talker', { message: 'slow' });
    const slow = await openSse(eventsOf(run.id));
    const listener = createListener();
    begin.release();
    const { events } = slow;
    for (let next = await events.next(); !next.done; next = await events.next()) {
      listener.receive(next.value);
      if (listener.partial !== '') break;
    }
    // From here on, the client does not read what the server sends.
    slow.response.pause();
    more.release();
    const outcome = await client.result(run);
    expect(outcome.answer).toBe('begins, and goes on');
    for (let next = await events.next(); !next.done; next = await events.next()) {
      listener.receive(next.value);
    }
    expect(listener.replies).toEqual(['begins, and goes on']);
    expect(listener.events.some(({ type }) => type === 'gap')).toBe(true);
    expect(listener.partial).toBe('');
    const units = listener.streamed[0]?.length ?? Infinity;
    expect(units).toBeLessThan(deltas * word.length);
    expect(listener.events.at(-1)?.type).toBe('run-ended');
  });

  test('sends the same events to 200 readers', async () => {
    const [begin, rest] = [gate(), gate()];
    talker.on('crowd', async ({ emit }) => {
      await begin.wait();
      for (let word = 0; word < 50; word += 1) emit(`word ${word} `);
      await rest.wait();
      emit('end');
      return 'all of it';
    });
    const run = await client.start('talker', { message: 'crowd' });
    const readers = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const reader = await openSse(eventsOf(run.id));
        const listener = createListener();
        return { listener, end: listen(reader.events, listener) };
      }),
    );
    begin.release();
    rest.release();
    await Promise.all(readers.map(({ end }) => end));
    const [first] = readers;
    for (const { listener } of readers) expect(listener.events).toEqual(first?.listener.events);
    expect(first?.listener.replies).toEqual(['all of it']);
  });

  test('answers 404 before the stream begins if the run or the path does not exist', async () => {
    const none = await request(eventsOf('no-such-run'));
    expect([none.statusCode, await textOf(none)]).toEqual([404, expect.stringContaining('no run')]);
    for (const path of ['/', '/runs/x', '/runs/x/toString', '/runs//events']) {
      const other = await request(`${url}${path}`);
      expect(other.statusCode).toBe(404);
      other.resume();
    }
  });

  test('answers 400, and never 503, to an impossible position or id', async () => {
    talker.on('short', async () => 'short');
    const run = await client.start('talker', { message: 'short' });
    await client.result(run);
    const id = encodeURIComponent(run.id);
    const other = '00000000-0000-4000-8000-000000000000';
    const { events } = await listen(client.stream(run), createListener());
    const position = events[0]?.position ?? '';
    const beyond = position.replace(/:\d+:/, ':999999:');
    for (const odd of [
      'odd',
      'a:1:0',
      `${other}:1:0`,
      beyond,
      `${position}~x`,
      `${position}~${'9'.repeat(40)}`,
      `~s~1~1~1~1~${'9'.repeat(400)}`,
      '-1',
      '..',
      'x'.repeat(2_000),
    ]) {
      const byHeader = await request(`${url}/runs/${id}/events`, { 'last-event-id': odd });
      const byQuery = await request(`${url}/runs/${id}/events?after=${odd}`);
      const texts = await Promise.all([textOf(byHeader), textOf(byQuery)]);
      expect([odd, byHeader.statusCode, byQuery.statusCode]).toEqual([odd, 400, 400]);
      expect(texts[0]).toMatch(/^\{"error":"(?:after|from): /);
    }
    for (const odd of ['%00', 'x'.repeat(2_000), '%ff', '%E0%A4%A']) {
      const response = await request(`${url}/runs/${odd}/events`);
      expect([odd, [400, 404].includes(response.statusCode ?? 0)]).toEqual([odd, true]);
      response.resume();
    }
  });

  test('refuses pages of other sites, under any name of this machine', async () => {
    const status = async (headers: Readonly<Record<string, string>>): Promise<number> => {
      const response = await request(eventsOf('no-such-run'), headers);
      response.resume();
      return response.statusCode ?? 0;
    };
    const { port } = new URL(url);
    expect(await status({ host: `evil.example:${port}` })).toBe(403);
    expect(await status({ host: `127.0.0.1.evil.example:${port}` })).toBe(403);
    expect(await status({ origin: 'https://evil.example' })).toBe(403);
    expect(await status({ origin: 'null' })).toBe(403);
    expect(await status({ host: `localhost:${port}` })).toBe(404);
    expect(await status({ origin: `http://127.0.0.1:${port}` })).toBe(404);
  });

  test('requires the token in the header, and accepts it nowhere else', async () => {
    const other = await createRig();
    const reader = await clientOf(other);
    const rest = gate();
    talker.on('secret', async ({ emit }) => {
      emit('secret');
      await rest.wait();
      return 'secret';
    });
    const { live } = await other.worker([talker.agent], {
      models: { talk: talker.model },
      live: { host: '0.0.0.0', token: 'a-token' },
    });
    const run = await reader.start('talker', { message: 'secret' });
    const { port } = new URL(live?.url ?? '');
    const path = `http://127.0.0.1:${port}/runs/${run.id}/events`;
    for (const headers of [{}, { authorization: 'Bearer a-tokem' }, { authorization: 'a-token' }]) {
      const refused = await request(path, headers);
      expect(refused.statusCode).toBe(401);
      refused.resume();
    }
    const inQuery = await request(`${path}?token=a-token&access_token=a-token`);
    expect(inQuery.statusCode).toBe(401);
    inQuery.resume();
    const sse = await openSse(path, { authorization: 'Bearer a-token' });
    const listener = createListener();
    await listen(sse.events, listener, () => listener.partial === 'secret');
    sse.close();
    rest.release();
    await reader.result(run);
    await reader.disconnect();
    await other.close();
  });

  test('is not served to other machines without a token', async () => {
    const start = (live: object): Promise<unknown> => rig.worker([talker.agent], { live });
    await expect(start({ host: '0.0.0.0' })).rejects.toThrow('set PERDURE_LIVE_TOKEN');
    await expect(start({ host: '10.1.2.3' })).rejects.toThrow('10.1.2.3 lets other machines read');
    await expect(start({ token: 'a b' })).rejects.toThrow('live.token: expected visible ASCII');
    await expect(start({ port: 70_000 })).rejects.toThrow('got 70000');
    const { port } = new URL(url);
    await expect(start({ port: Number(port) })).rejects.toThrow(`at 127.0.0.1:${port}`);
  });
});
