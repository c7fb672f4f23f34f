import type { Browser, Page } from 'playwright-core';
import { type TestContext, afterAll, beforeAll, expect, test } from 'vitest';
import { type ConsolePage, openConsole, startChromium } from '../support/console-pages.js';
import { type HttpDesk, openHttpDesk } from '../support/http-desk.js';

/** What a person types in the console. */
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
    const agents = [{ ...agent, prompts: [], rights: ['start'] }];
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
