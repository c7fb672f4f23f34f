import { readFileSync, readdirSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { type TestContext, afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { replyCalls } from '../../src/testing/replies.js';
import { askPerson } from '../../src/tools/built-in/workflow-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { callsIn, serveAsking } from '../support/asking-server.js';
import {
  type ConsolePage,
  openConsole,
  openLocked,
  rendersAgain,
  startChromium,
} from '../support/console-pages.js';
import { gate } from '../support/gate.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

const FOLDER = fileURLToPath(new URL('../../console/', import.meta.url));

const folder = await mkdtemp(join(tmpdir(), 'perdure-asks-'));
const ledger = join(folder, 'ledger.jsonl');
let desk: HttpDesk;
let shop: Awaited<ReturnType<typeof serveAsking>>;
let browser: Browser | null;

/** An agent whose model chooses every text of its requests. */
const clerk = defineAgent({
  name: 'clerk',
  instructions: 'x',
  model: 'talk',
  limits: { steps: 20, toolCalls: null, wall: '10 minutes', run: { tokens: 1_000_000 } },
  tools: [
    askPerson(),
    defineTool({
      name: 'note',
      description: 'notes',
      input: z.looseObject({ text: z.string() }),
      effect: 'keyed',
      execute: async () => 'noted',
    }),
  ],
  rules: [{ tool: 'note', then: 'ask' }],
});

beforeAll(async () => {
  shop = await serveAsking(ledger);
  const mcp = [mcpServer({ name: 'shop', transport: 'http', url: shop.url })];
  const buyer = defineAgent({ name: 'buyer', instructions: 'x', model: 'talk', mcp });
  desk = await openHttpDesk(['ann'], {}, { agents: [clerk, buyer] });
  browser = await startChromium();
});
afterAll(async () => {
  await browser?.close();
  await desk.close();
  await shop.close();
  await rm(folder, { recursive: true, force: true });
});

const openPage = async (
  context: TestContext,
  hash: string,
  options: { readonly width?: number } = {},
): Promise<ConsolePage> => await openConsole(context, { browser, url: desk.url, hash, ...options });

test('the files are small, and load nothing from elsewhere', async () => {
  const files = readdirSync(FOLDER, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(`${entry.parentPath}/${entry.name}`));
  expect(gzipSync(Buffer.concat(files)).length).toBeLessThan(60 * 1024);
  const answer = await fetch(desk.url);
  expect(answer.headers.get('content-security-policy')).toContain("default-src 'self'");
  const scripts = [...(await answer.text()).matchAll(/<script[^>]*>([^<]*)/g)];
  expect(scripts.map(([, inline]) => inline)).toEqual(['']);
  const links = readdirSync(FOLDER).filter((name) => name.endsWith('.js'));
  const statuses = links.map(async (name) => (await fetch(`${desk.url}/console/${name}`)).status);
  expect(await Promise.all(statuses)).toEqual(links.map(() => 200));
  expect((await fetch(`${desk.url}/console/../package.json`)).status).toBe(404);
});

test('a person reads a request in full, and approves it with the keyboard', async (context) => {
  const { id } = await desk.asking(61);
  const { page, faults } = await openPage(context, '/inbox');
  const card = page.locator(`[data-request="${id} r1"]`);
  await card.waitFor();
  // Nothing can be decided before every argument is shown.
  expect(await card.locator('[data-as]').count()).toBe(0);
  // Runs of other tests wait on this server, too.
  const isFocused = async (): Promise<boolean> =>
    await card.evaluate((node) => node.contains(node.ownerDocument.activeElement));
  for (let presses = 0; presses < 500 && !(await isFocused()); presses += 1) {
    await page.keyboard.press('j');
  }
  await page.keyboard.press('Enter');
  await card.locator('.exact').waitFor();
  expect(await card.locator('.exact').innerText()).toMatch(/euros\s+61/);
  await page.keyboard.press('a');
  await page.keyboard.press('Enter');
  expect((await desk.client.result(id)).answer).toBe('done: paid 61');
  expect(desk.paid.filter((euros) => euros === 61)).toHaveLength(1);
  await card.waitFor({ state: 'detached' });
  const { decisions } = await desk.client.status(id);
  expect(decisions?.map(({ by }) => by)).toEqual(['ann']);
  await page.goto(`${desk.url}/#/run/${id}`);
  await page.locator('.step.call.good').waitFor();
  await page.locator('.step.call.good button').click();
  expect(await page.locator('.panel').innerText()).toContain('"euros": 61');
  expect(faults).toEqual([]);
  await page.close();
});

test('an agent is started from its form, and a chat strikes out text that does not count', async (context) => {
  const again = gate();
  desk.talker.on('tell me', async ({ number, emit }) => {
    if (number === 1) {
      emit('a first try');
      await again.wait();
      throw new Error('the connection broke');
    }
    return 'the answer that counts';
  });
  const { page, faults } = await openPage(context, '/agents/talker', { width: 360 });
  await page.fill('textarea[name=perdure-message]', 'tell me');
  await page.check('input[name=perdure-open]');
  await page.click('form.start button.primary');
  await page.getByText('a first try').waitFor();
  again.release();
  await page.locator('.said.agent p', { hasText: 'the answer that counts' }).waitFor();
  expect(await page.locator('.said.agent del').innerText()).toBe('a first try');
  desk.talker.on('tell me', () => Promise.resolve('and more'));
  await page.fill('#composer', 'go on');
  await page.keyboard.press('Enter');
  await page.locator('.said.agent p', { hasText: 'and more' }).waitFor();
  expect(await page.locator('.said.user').count()).toBe(2);
  const beyond = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await page.evaluate(beyond)).toBe(0);
  expect(faults).toEqual([]);
  await page.close();
});

test('text of a model is text: no markup, and no hidden characters', async (context) => {
  const id = `hostile-${randomUUID()}`;
  const text =
    '<img src=x onerror="document.title=1"> \u202Eevil\u200B\u{E0141}\u3164\uE000 می‌خواهم ❤️ [x](javascript:alert(1))';
  desk.talker.on(text, () => Promise.resolve(text));
  await desk.client.start('talker', { message: text, id });
  await desk.client.result(id);
  const { page, faults } = await openPage(context, `/run/${id}`);
  const shown = page.locator('.answer .prose');
  await shown.waitFor();
  expect(await shown.innerText()).toContain(
    '<img src=x onerror="document.title=1"> \\u{202e}evil\\u{200b}\\u{e0141}\\u{3164}\\u{e000} می‌خواهم ❤️ [x]',
  );
  expect(await page.locator('main img').count()).toBe(0);
  expect(faults).toEqual([]);
  await page.close();
});

test('texts that a model chose for a request stay text, fit a phone, and take away nothing that is typed', async (context) => {
  const long = 'L'.repeat(180);
  const evil = '<img src=x onerror="document.title=1">\u202Eevil';
  const id = `hostile-${randomUUID()}-${long}`;
  desk.talker.on(`${evil} ${long}`, async ({ number }) => {
    if (number > 1) return `${evil} ${long}`;
    return replyCalls([
      { name: 'note', arguments: { text: `${evil} ${long}`, [`${evil}${long}`]: long } },
      { name: 'ask_person', arguments: { question: `${evil} ${long}`, options: [evil, long] } },
    ]);
  });
  await desk.client.start('clerk', { message: `${evil} ${long}`, id, open: true });
  const { page, faults } = await openPage(context, `/run/${id}`, { width: 360 });
  const card = (request: string) => page.locator(`[data-request="${id} ${request}"]`);
  await card('r1').locator('.exact').waitFor();
  const beyond = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  const look = async (where: string): Promise<void> => {
    expect([where, await page.evaluate(beyond)]).toEqual([where, 0]);
    expect([where, await page.locator('main img').count()]).toEqual([where, 0]);
    expect(await page.locator('body').innerText()).not.toContain('\u202E');
    expect(await page.title()).not.toBe('1');
  };
  await look('run');
  await card('r2').locator('[data-as=answer]').click();
  await card('r2').locator('form.decide button', { hasText: 'evil' }).waitFor();
  await look('answer');
  // While a person writes about one request, another person answers the other one.
  const note = card('r1').locator('input');
  await note.fill('because');
  const asked = (await desk.client.status(id)).pending.find((one) => one.id === 'r2');
  const answer = { request: 'r2', digest: asked?.digest ?? '', as: 'answer', result: 'x' } as const;
  await desk.client.resolve(id, [answer], { by: 'bob' });
  await card('r2').waitFor({ state: 'detached' });
  expect(await note.inputValue()).toBe('because');
  await page.locator('.step.call button').first().click();
  await page.locator('.panel').waitFor();
  await look('panel');
  for (const where of ['chat', 'inbox', 'runs', 'agents/clerk']) {
    await page.goto(`${desk.url}/#/${where === 'chat' ? `chat/${id}` : where}`);
    if (where === 'inbox') await card('r1').locator('.summary').click();
    await page.getByText(long.slice(0, 30)).first().waitFor();
    await look(where);
  }
  expect(faults).toEqual([]);
  await page.close();
  await desk.client.cancel(id);
});

test('what an MCP server asks is a form with its fields, and an address that only the person opens', async (context) => {
  const id = randomUUID();
  desk.talker.on(`buy ${id}`, async ({ number }) => {
    if (number > 2) return 'bought';
    return replyCalls([{ name: number === 1 ? 'shop__deploy' : 'shop__pay', arguments: {} }]);
  });
  await desk.client.start('buyer', { message: `buy ${id}`, id });
  const { page, faults } = await openPage(context, `/run/${id}`);
  const card = (request: string) => page.locator(`[data-request="${id} ${request}"]`);
  await card('r1').locator('[data-as=answer]').click();
  const fields = card('r1').locator('form.decide label');
  expect(await fields.allInnerTexts()).toEqual([
    expect.stringContaining('Really deploy'),
    expect.stringContaining('Where \\u{202e}it runs'),
  ]);
  await fields.nth(0).locator('select').selectOption({ label: 'yes' });
  await card('r1').locator('form.decide button.primary').click();
  await card('r2').locator('[data-as=answer]').click();
  await card('r2').locator('input[type=number]').fill('20');
  await rendersAgain(card('r2'));
  await card('r2').locator('form.decide button.primary').click();
  const link = card('r3').getByRole('link', { name: 'Open pay.example' });
  await link.waitFor();
  expect(await link.getAttribute('rel')).toBe('noopener noreferrer');
  await card('r3').locator('[data-as=answer]').click();
  await card('r3').locator('form.decide button', { hasText: 'done' }).click();
  expect((await desk.client.result(id)).answer).toBe('bought');
  const acted = callsIn(ledger).filter((one) => one.acted === true);
  expect(acted.slice(-2).map(({ answers }) => answers)).toEqual([
    { sure: { action: 'accept', content: { confirm: true, region: 'north' } } },
    { amount: { action: 'accept', content: { euros: 20 } }, link: { action: 'accept' } },
  ]);
  expect(faults).toEqual([]);
  await page.close();
});

test('an agent has its limits beside its last runs', async (context) => {
  const { page, faults } = await openPage(context, '/agents/clerk');
  const rows = page.locator('.limits > div');
  await rows.first().waitFor();
  expect((await rows.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))).toEqual([
    'steps 20 each turn',
    'tool calls none each turn',
    'time 10 min each turn',
    'tokens 1000000 in the whole run',
  ]);
  expect(faults).toEqual([]);
  await page.close();
});

test('an address that was cut shows what is missing, and no empty page', async (context) => {
  const { page, faults } = await openPage(context, '/run/%E0%A4%A');
  await page.getByText('there is no run').first().waitFor();
  expect(faults).toEqual([]);
  await page.close();
});

test('a key that no header can carry is refused, and one that is stored does not lock the tab', async (context) => {
  const { page, faults } = await openLocked(context, { browser, url: desk.url, hash: '/runs' });
  await page.fill('input[name=key]', 'ключ-ключ-ключ-ключ');
  await page.keyboard.press('Enter');
  await page.getByText('A key has visible ASCII characters only').waitFor();
  await page.evaluate(`sessionStorage.setItem('perdure-key', 'ключ-ключ-ключ-ключ')`);
  await page.reload();
  await page.locator('.failure').waitFor();
  await page.fill('input[name=key]', keyOf('ann'));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Runs' }).waitFor();
  expect(faults).toEqual([]);
  await page.close();
});
