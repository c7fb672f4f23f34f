import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { type TestContext, afterAll, beforeAll, expect, test } from 'vitest';
import { type ConsolePage, openConsole, startChromium } from '../support/console-pages.js';
import { gate } from '../support/gate.js';
import { type HttpDesk, openHttpDesk } from '../support/http-desk.js';

/** What a person types in the console, and the pages of its lists. */
let desk: HttpDesk;
let browser: Browser | null;

beforeAll(async () => {
  desk = await openHttpDesk(['ann']);
  browser = await startChromium();
});
afterAll(async () => {
  await browser?.close();
  await desk.close();
});

const openPage = async (
  context: TestContext,
  hash: string,
  prepare?: (page: Page) => Promise<void>,
): Promise<ConsolePage> =>
  await openConsole(context, { browser, url: desk.url, hash, ...(prepare && { prepare }) });

/** An open run in which each message is answered. */
async function chatting(): Promise<string> {
  const id = `chat-${randomUUID()}`;
  desk.talker.on(id, ({ number }) => Promise.resolve(`reply ${number}`));
  await desk.client.start('talker', { message: id, id, open: true });
  await desk.client.result(id, { turn: 1 });
  return id;
}

const unknown = { error: { code: 'no_worker', message: 'the message may still take effect' } };

test('a message that is sent again is one message, and other words are another one', async (context) => {
  const id = await chatting();
  let lost = 0;
  const { page, faults } = await openPage(context, `/chat/${id}`, async (prepared) => {
    await prepared.route(/\/messages$/, async (route) => {
      if (lost === 2) return await route.continue();
      await route.fetch();
      lost += 1;
      return await route.fulfill({ status: 503, json: unknown });
    });
  });
  const composer = page.locator('#composer');
  await composer.fill('first words');
  await page.keyboard.press('Enter');
  await page.getByText('may still take effect').waitFor();
  await page.keyboard.press('Enter');
  await expect.poll(() => lost).toBe(2);
  await page.locator('.composer button:enabled').waitFor();
  // A message that comes during a turn joins it.
  await page.locator('.said.agent p', { hasText: 'reply 2' }).waitFor();
  await composer.fill('corrected words');
  await page.keyboard.press('Enter');
  await page.locator('.said.agent p', { hasText: 'reply 3' }).waitFor();
  expect(await page.locator('.said.user p').allInnerTexts()).toEqual([
    id,
    'first words',
    'corrected words',
  ]);
  // The run may reply before the page has the answer to its request.
  await expect.poll(() => composer.inputValue()).toBe('');
  expect(faults).toEqual([]);
  await page.close();
  await desk.client.cancel(id);
});

test('what is typed while a message is sent stays', async (context) => {
  const id = await chatting();
  const held = gate();
  const { page, faults } = await openPage(context, `/chat/${id}`, async (prepared) => {
    await prepared.route(/\/messages$/, async (route) => {
      await held.wait();
      await route.continue();
    });
  });
  const composer = page.locator('#composer');
  await composer.fill('first words');
  await page.keyboard.press('Enter');
  await page.locator('.composer button:disabled').waitFor();
  await composer.fill('later words');
  held.release();
  await page.locator('.said.agent p', { hasText: 'reply 2' }).waitFor();
  await page.locator('.composer button:enabled').waitFor();
  expect(await composer.inputValue()).toBe('later words');
  expect(faults).toEqual([]);
  await page.close();
  await desk.client.cancel(id);
});

const SCHEMA = {
  type: 'object',
  properties: {
    sure: { type: 'boolean' },
    city: { type: 'string', default: 'Oslo' },
    count: { type: 'integer', default: 3 },
    list: { type: 'array' },
  },
};

test('a start form keeps what is typed over its defaults, and sends no number that would be another one', async (context) => {
  const bodies: unknown[] = [];
  const { page, faults } = await openPage(context, '/agents', async (prepared) => {
    const agent = { name: 'graph', description: '', graph: true, input: SCHEMA, args: null };
    const limits = { turn: {}, run: {} };
    const agents = [{ ...agent, prompts: [], rights: ['start'], limits }];
    await prepared.route(/\/v1\/agents$/, (route) => route.fulfill({ json: { agents } }));
    await prepared.route(/\/v1\/runs$/, async (route) => {
      bodies.push(route.request().postDataJSON());
      await route.fulfill({ status: 400, json: { error: { message: 'not now' } } });
    });
  });
  await page.check('input[name=sure]');
  await page.fill('input[name=city]', 'Bergen');
  await page.fill('input[name=count]', '9007199254740993');
  await page.fill('textarea[name=list]', '[12345678901234567890]');
  const start = page.locator('form.start button.primary');
  await start.click();
  await page.getByText('count: the number 9007199254740993 cannot be kept exactly').waitFor();
  await page.fill('input[name=count]', '4');
  await start.click();
  await page.getByText('list: the number 12345678901234567890 cannot be kept exactly').waitFor();
  await page.fill('textarea[name=list]', '["12345678901234567890"]');
  await start.click();
  await page.getByText('not now').waitFor();
  const input = { sure: true, city: 'Bergen', count: 4, list: ['12345678901234567890'] };
  expect(bodies).toMatchObject([{ agent: 'graph', input }]);
  expect(faults).toEqual([]);
  await page.close();
});

const row = (id: string) => ({
  id,
  runId: `${id}-1`,
  agent: 'desk',
  status: 'completed',
  reason: 'answer',
  startedAt: '2026-11-27T00:00:00.000Z',
});

test('a list of runs loses none between its pages, and shows why a page could not be read', async (context) => {
  let newest = ['b', 'c'];
  const older = gate();
  const failures = ['try again'];
  const { page, faults } = await openPage(context, '/runs', async (prepared) => {
    await prepared.route(/\/v1\/runs\?/, async (route) => {
      const query = new URL(route.request().url()).searchParams;
      if (query.get('cursor') === null) {
        return await route.fulfill({ json: { rows: newest.map(row), cursor: 'next' } });
      }
      const message = failures.pop();
      if (message !== undefined)
        return await route.fulfill({ status: 503, json: { error: { message } } });
      await older.wait();
      // One of them has ended meanwhile, so it is on this page, too.
      return await route.fulfill({ json: { rows: ['b', 'd'].map(row), cursor: null } });
    });
  });
  const ids = page.locator('.runs .id');
  const next = page.getByRole('button', { name: 'Older' });
  await next.click();
  await page.getByText('try again').waitFor();
  expect(await ids.allInnerTexts()).toEqual(['b', 'c']);
  await next.click();
  newest = ['a', 'b'];
  older.release();
  await page.locator('.runs .id', { hasText: 'd' }).waitFor();
  const polled = () => page.waitForResponse((response) => response.url().endsWith('limit=30'));
  await polled();
  await polled();
  expect(await ids.allInnerTexts()).toEqual(['b', 'c', 'd']);
  await page.getByRole('button', { name: 'Back to the newest' }).click();
  expect(await ids.allInnerTexts()).toEqual(['a', 'b']);
  expect(faults).toEqual([]);
  await page.close();
});

test('a page of runs that arrives after another status was chosen is not added to its list', async (context) => {
  const older = gate();
  const { page, faults } = await openPage(context, '/runs', async (prepared) => {
    await prepared.route(/\/v1\/runs\?/, async (route) => {
      const query = new URL(route.request().url()).searchParams;
      const isOlder = query.get('cursor') !== null;
      if (isOlder) await older.wait();
      const rows = isOlder ? ['old'] : query.get('status') === null ? ['new'] : ['blocked'];
      await route.fulfill({ json: { rows: rows.map(row), cursor: isOlder ? null : 'next' } });
    });
  });
  const ids = page.locator('.runs .id');
  const late = page.waitForResponse(/cursor=next/);
  await page.getByRole('button', { name: 'Older' }).click();
  await page.getByRole('button', { name: 'blocked' }).click();
  await page.locator('.runs .id', { hasText: 'blocked' }).waitFor();
  older.release();
  await (await late).finished();
  // What was loaded after it is shown, so it would be shown, too.
  await page.waitForResponse(/status=blocked/);
  expect(await ids.allInnerTexts()).toEqual(['blocked']);
  expect(faults).toEqual([]);
  await page.close();
});
