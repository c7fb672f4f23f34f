import { connect } from 'node:net';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import {
  replyCalls,
  replyRaw,
  replyReset,
  replyText,
  type Reply,
} from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';

async function stubFor(...steps: readonly Reply[]): Promise<Stub> {
  const stub = await startStub();
  stub.script(...steps);
  onTestFinished(() => stub.close());
  return stub;
}

function ask(stub: Stub, options: { stream?: boolean; signal?: AbortSignal } = {}) {
  const { stream = false, ...init } = options;
  return fetch(`${stub.baseUrl}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], stream }),
    ...init,
  });
}

/** Reads everything on the wire, and how the connection ends. */
async function onWire(stub: Stub): Promise<{ text: string; pieces: number; end: string }> {
  const { port, hostname } = new URL(stub.baseUrl);
  const body = '{"stream":true}';
  const socket = connect({ host: hostname, port: Number(port) });
  let text = '';
  let pieces = 0;
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    pieces += 1;
  });
  const end = new Promise<string>((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    socket.on('end', () => resolve('end'));
  });
  await once(socket, 'connect');
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  return { end: await end, text, pieces };
}

test('holds an answer at a barrier before the headers', async () => {
  const stub = await stubFor(replyText('late', { holdBeforeHeaders: 'gate' }));
  const barrier = stub.barrier('gate');
  let hasHeaders = false;
  const response = ask(stub).then((answer) => {
    hasHeaders = true;
    return answer;
  });
  await barrier.reached;
  expect([barrier.waiting, barrier.arrived, hasHeaders]).toEqual([1, 1, false]);
  barrier.release();
  expect(await (await response).text()).toContain('late');
  expect(barrier.waiting).toBe(0);
});

test('holds an answer at a barrier after the headers', async () => {
  const stub = await stubFor(replyText('late', { holdAfterHeaders: 'gate' }));
  const barrier = stub.barrier('gate');
  const response = await ask(stub);
  expect(response.status).toBe(200);
  await barrier.reached;
  barrier.release();
  expect(await response.text()).toContain('late');
});

test('counts the answers at a barrier and does not hold later ones once it is open', async () => {
  const stub = await startStub();
  onTestFinished(() => stub.close());
  stub.fallback(() => replyText('x', { holdBeforeHeaders: 'gate' }));
  const barrier = stub.barrier('gate');
  const both = [ask(stub), ask(stub)];
  await barrier.reachedBy(2);
  expect(barrier.waiting).toBe(2);
  barrier.release();
  await Promise.all(both.map(async (response) => (await response).text()));
  expect(await (await ask(stub)).text()).toContain('x');
  expect([barrier.waiting, barrier.arrived]).toEqual([0, 3]);
});

test('notices a client that disconnects at a barrier, and continues', async () => {
  const stub = await stubFor(replyText('never', { holdBeforeHeaders: 'gate' }), replyText('next'));
  const controller = new AbortController();
  const response = ask(stub, { signal: controller.signal });
  await stub.barrier('gate').reached;
  controller.abort();
  await expect(response).rejects.toThrow('aborted');
  expect(await stub.requests[0]?.ended).toBe('client');
  expect(stub.requests[0]?.closedByClient).toBe(true);
  expect(stub.barrier('gate').waiting).toBe(0);
  expect(await (await ask(stub)).text()).toContain('next');
  stub.assertConsumed();
});

test('notices a client that disconnects during a slow answer', async () => {
  const stub = await stubFor(replyText('x'.repeat(500), { drip: { bytes: 1, every: 5 } }));
  const controller = new AbortController();
  const response = await ask(stub, { signal: controller.signal });
  controller.abort();
  await expect(response.text()).rejects.toThrow('aborted');
  expect(await stub.requests[0]?.ended).toBe('client');
});

test('delays an answer', async () => {
  const stub = await stubFor(replyText('slow', { delay: 200 }), replyText('quick'));
  const order: string[] = [];
  const asked = async (): Promise<void> => {
    const text = await (await ask(stub)).text();
    order.push(text.includes('slow') ? 'slow' : 'quick');
  };
  await Promise.all([asked(), asked()]);
  expect(order).toEqual(['quick', 'slow']);
});

test('sends small parts with pauses', async () => {
  const stub = await stubFor(replyRaw('abcdefgh', { drip: { bytes: 2, every: 3 } }));
  const { text, pieces } = await onWire(stub);
  expect(text).toMatch(/\r\nab\r\n2\r\ncd\r\n2\r\nef\r\n2\r\ngh\r\n/);
  expect(pieces).toBeGreaterThan(2);
});

test('ends the message after a number of bytes', async () => {
  const stub = await stubFor(replyRaw('abcdef', { cut: { afterBytes: 3, how: 'end' } }));
  expect(await (await ask(stub)).text()).toBe('abc');
  expect(await stub.requests[0]?.ended).toBe('answered');
});

test('resets the connection after a number of bytes', async () => {
  const stub = await stubFor(replyRaw('abcdef', { cut: { afterBytes: 3, how: 'reset' } }));
  const { text, end } = await onWire(stub);
  expect(text).toMatch(/3\r\nabc\r\n$/);
  // A busy machine may read data and the reset together; Node then reports an orderly end.
  expect(['ECONNRESET', 'end']).toContain(end);
  expect(await stub.requests[0]?.ended).toBe('cut');
});

test('closes the connection in the middle of a message', async () => {
  const stub = await stubFor(replyRaw('abcdef', { cut: { afterBytes: 3, how: 'close' } }));
  const { end, text } = await onWire(stub);
  expect(end).toBe('end');
  expect(text).toMatch(/3\r\nabc\r\n$/);
  expect(await stub.requests[0]?.ended).toBe('cut');
});

test('resets the connection before it sends a byte', async () => {
  const stub = await stubFor(replyReset());
  expect(await onWire(stub)).toMatchObject({ end: 'ECONNRESET', text: '' });
});

test('close ends held answers and open connections', async () => {
  const stub = await startStub();
  stub.script(replyText('never', { holdAfterHeaders: 'gate' }));
  const response = await ask(stub);
  const body = response.text();
  await Promise.all([expect(body).rejects.toThrow('terminated'), stub.close()]);
  expect(await stub.requests[0]?.ended).toBe('closed');
});

const EVENTS = /^data: (.*)$/gm;

async function streamed(step: Reply): Promise<{ text: string; data: string[] }> {
  const stub = await stubFor(step);
  const response = await ask(stub, { stream: true });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const text = await response.text();
  return { text, data: [...text.matchAll(EVENTS)].map((match) => match[1] ?? '') };
}

test('streams text in parts, with usage and the end mark', async () => {
  const { data } = await streamed(replyText('hello', { sse: { charactersPerEvent: 2 } }));
  expect(data.at(-1)).toBe('[DONE]');
  const chunks = data.slice(0, -1).map((item) => JSON.parse(item));
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('|')).toBe('|he|ll|o||');
  expect(chunks.at(-2)).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 10 } });
});

test('streams calls in parts', async () => {
  const { data } = await streamed(
    replyCalls([{ name: 'f', arguments: '{"a":1}' }], { sse: { charactersPerEvent: 4 } }),
  );
  const pieces = data
    .slice(0, -1)
    .flatMap((item) => JSON.parse(item).choices[0]?.delta.tool_calls ?? []);
  expect(pieces).toMatchObject([
    { index: 0, id: 'call_0', function: { name: 'f', arguments: '' } },
    { index: 0, function: { arguments: '{"a"' } },
    { index: 0, function: { arguments: ':1}' } },
  ]);
});

test('damages a stream in each supported way', async () => {
  const crlf = await streamed(replyText('x', { sse: { lineEnd: '\r\n', comments: true } }));
  expect(crlf.text).toMatch(/^: still here\r\ndata: \{.*\}\r\n\r\n: still here\r\n/);
  const malformed = await streamed(
    replyText('x', { sse: { malformed: { event: 1, data: '{oops' } } }),
  );
  expect(malformed.data[1]).toBe('{oops');
  const noDone = await streamed(replyText('x', { sse: { endBefore: 'done' } }));
  expect(noDone.data.at(-1)).toContain('usage');
  const noFinish = await streamed(replyText('x', { sse: { endBefore: 'finish' } }));
  expect(noFinish.data).toHaveLength(2);
  expect(noFinish.data.at(-1)).toContain('"content":"x"');
  const noUsage = await streamed(replyText('x', { usage: null, sse: { endBefore: 'finish' } }));
  expect(noUsage.data).toHaveLength(2);
});
