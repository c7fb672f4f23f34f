import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { serve } from '@hono/node-server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApp } from '../../examples/web-app/app.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { replyText } from '../../src/testing/replies.js';
import { clientOf } from '../support/clerk.js';
import { startChromium } from '../support/console-pages.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
let client: PerdureClient;
beforeAll(async () => {
  example = await startExample('web-app');
  client = await clientOf(example.rig);
});
afterAll(async () => {
  await client.disconnect();
  await example.close();
});

interface Site {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Serves the app on a real port, as the example does. */
async function open(at = 0): Promise<Site> {
  const { port, server } = await new Promise<{ port: number; server: ReturnType<typeof serve> }>(
    (resolve) => {
      const started = serve(
        { fetch: createApp(client).fetch, hostname: '127.0.0.1', port: at },
        (address) => resolve({ port: address.port, server: started }),
      );
    },
  );
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async close() {
      if ('closeAllConnections' in server) server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Sent {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Reads events, as a browser does, until one has this text. */
async function readUntil(
  site: Site,
  path: string,
  text: string,
  after?: string,
): Promise<readonly Sent[]> {
  const over = new AbortController();
  const headers = after === undefined ? {} : { 'Last-Event-ID': after };
  const response = await fetch(site.url + path, { headers, signal: over.signal });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const found: Sent[] = [];
  let rest = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    found.push(...blocks.map(parse));
    if (found.some(({ event, data }) => event === 'model-replied' && data.includes(text))) break;
  }
  over.abort();
  return found;
}

function parse(block: string): Sent {
  const field = (name: string): string =>
    block
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2) ?? '';
  return { id: field('id'), event: field('event'), data: field('data') };
}

async function say(site: Site, path: string, text: string, id: string = randomUUID()) {
  const response = await fetch(`${site.url}${path}/messages/${id}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text }),
  });
  return { status: response.status, body: await response.json() };
}

test('a reader resumes a conversation although web server and worker restart in between', async () => {
  const { stub } = example;
  stub.script(replyText('Welcome.'), replyText('At nine.'));
  const path = `/conversations/${randomUUID()}`;
  const first = await open();
  const page = await (await fetch(first.url)).text();
  expect(page).toContain("new EventSource(base + '/events')");
  expect((await fetch(`${first.url}${path}/events`)).status).toBe(404);
  expect(await say(first, path, 'Hello', 'm-1')).toEqual({
    status: 200,
    body: { delivered: true },
  });
  // The browser sends it again, because it has not seen the answer.
  expect(await say(first, path, 'Hello', 'm-1')).toMatchObject({ status: 200 });
  const before = await readUntil(first, `${path}/events`, 'Welcome.');
  await first.close();
  await example.restart();
  const second = await open();
  expect(await say(second, path, 'When do you open?')).toMatchObject({ status: 200 });
  const after = await readUntil(second, `${path}/events`, 'At nine.', before.at(-1)?.id);
  const textsOf = (events: readonly Sent[]) =>
    events
      .filter(({ event }) => event === 'message-added' || event === 'model-replied')
      .map(({ data }) => data);
  expect(textsOf(before).join('\n')).toMatch(/Hello.*\n.*Welcome/);
  expect(textsOf(after)).toHaveLength(2);
  expect(textsOf(after).join('\n')).toMatch(/When do you open.*\n.*At nine/);
  expect(await say(second, path, '  ')).toEqual({
    status: 400,
    body: { error: 'message: expected text, got an empty string' },
  });
  await second.close();
  stub.assertConsumed();
});

test('a page in a browser shows replies, and reconnects after web server and worker have restarted', async (context) => {
  const browser = await startChromium();
  if (browser === null) return context.skip('no Chromium is installed: apt-get install chromium');
  const { stub } = example;
  stub.script(replyText('Welcome.'), replyText('At nine.'));
  const first = await open();
  try {
    const page = await browser.newPage();
    await page.goto(first.url);
    const send = async (text: string): Promise<void> => {
      await page.fill('input[name=text]', text);
      await page.click('button');
    };
    const shows = (text: string) => page.getByText(text).waitFor({ timeout: 45_000 });
    await send('Hello');
    await shows('Welcome.');
    await first.close();
    await example.restart();
    const second = await open(first.port);
    await send('When do you open?');
    await shows('At nine.');
    expect(await page.locator('p').allInnerTexts()).toEqual([
      'Hello',
      'Welcome.',
      'When do you open?',
      'At nine.',
    ]);
    await page.reload();
    await shows('At nine.');
    expect(await page.locator('p').count()).toBe(4);
    await second.close();
  } finally {
    await browser.close();
  }
  stub.assertConsumed();
});

test('a message whose answer is lost is sent again as the same one, and a double click sends one', async (context) => {
  const browser = await startChromium();
  if (browser === null) return context.skip('no Chromium is installed: apt-get install chromium');
  const { stub } = example;
  stub.script(replyText('Welcome.'), replyText('At nine.'));
  const site = await open();
  try {
    const page = await browser.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(site.url);
    await page.route('**/messages/*', async (route) => {
      await route.fetch();
      await route.abort();
    });
    await page.fill('input[name=text]', 'Hello');
    await page.click('button');
    await page.getByText('The server does not answer. Send it again.').waitFor();
    await page.unroute('**/messages/*');
    await page.click('button');
    await page.getByText('Welcome.').waitFor({ timeout: 45_000 });
    await page.fill('input[name=text]', 'When do you open?');
    const form = `document.querySelector('form')`;
    await page.evaluate(`${form}.requestSubmit(); ${form}.requestSubmit()`);
    await page.getByText('At nine.').waitFor({ timeout: 45_000 });
    await page.reload();
    await page.getByText('At nine.').waitFor({ timeout: 45_000 });
    expect(await page.locator('p').allInnerTexts()).toEqual([
      'Hello',
      'Welcome.',
      'When do you open?',
      'At nine.',
    ]);
    expect(faults).toEqual([]);
  } finally {
    await browser.close();
    await site.close();
  }
  stub.assertConsumed();
});
