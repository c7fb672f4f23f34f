import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openConsole, openLocked, startChromium } from '../support/console-pages.js';
import { contractPackages } from '../support/contract-packages.js';
import { type HttpDesk, openHttpDesk } from '../support/http-desk.js';

/** What people with a screen reader, a keyboard, or weak sight need of the console, by the rules of axe. */
const packages = await contractPackages();
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

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** A screen, and a phone. */
const LOOKS = [
  [1280, 'light'],
  [360, 'dark'],
] as const;

/** Returns what axe finds on a page in each look. */
async function violations(page: Page, axe: string): Promise<readonly string[]> {
  await page.evaluate(axe);
  const found: string[] = [];
  for (const [width, colorScheme] of LOOKS) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    const { violations: all } = await page.evaluate<{ violations: readonly Violation[] }>(
      `axe.run({ resultTypes: ['violations'] })`,
    );
    for (const { id, help, nodes } of all) {
      const shown = nodes.map(
        ({ html, failureSummary = '' }) => `\n  ${html}\n  ${failureSummary}`,
      );
      found.push(`${id} (${width}, ${colorScheme}): ${help}${shown.join('')}`);
    }
  }
  return found;
}

test('the console keeps the rules of axe, on each of its pages', async (context) => {
  if (typeof packages === 'string') return context.skip(packages);
  const axe = await readFile(join(packages.folder, 'node_modules/axe-core/axe.min.js'), 'utf8');
  const id = `chat-${randomUUID()}`;
  desk.talker.on(id, () => Promise.resolve('a *reply* with `code`'));
  await desk.client.start('talker', { message: id, id, open: true, by: 'ann' });
  await desk.client.result(id, { turn: 1 });
  const asking = await desk.asking(31);
  const ended = await desk.asking(32);
  const { digest } = ended.request;
  await desk.client.resolve(ended.id, { request: 'r1', digest, as: 'approve' });
  await desk.client.result(ended.id);

  const locked = await openLocked(context, { browser, url: desk.url, hash: '/inbox' });
  await locked.page.locator('input[name=key]').waitFor();
  const found: Record<string, readonly string[]> = {};
  found['key'] = await violations(locked.page, axe);
  await locked.page.close();

  const { page, faults } = await openConsole(context, { browser, url: desk.url, hash: '/inbox' });
  const card = page.locator(`[data-request="${asking.id} r1"]`);
  await card.waitFor();
  found['inbox'] = await violations(page, axe);
  await card.locator('.summary').click();
  await card.locator('[data-as=approve]').waitFor();
  found['request'] = await violations(page, axe);
  const show = async (hash: string, seen: string): Promise<void> => {
    await page.goto(`${desk.url}/#${hash}`);
    await page.locator(seen).first().waitFor();
  };
  await show(`/run/${asking.id}`, '[data-as=edit]');
  await page.locator('[data-as=edit]').click();
  found['edit'] = await violations(page, axe);
  await show(`/run/${ended.id}`, '.step.call.good');
  await page.locator('details.graph summary').click();
  await page.locator('.drawing svg').waitFor();
  await page.locator('.step.call.good button').click();
  await page.locator('.panel').waitFor();
  found['run'] = await violations(page, axe);
  await show(`/chat/${id}`, '.said.agent');
  found['chat'] = await violations(page, axe);
  await show('/agents', 'form.start');
  found['agents'] = await violations(page, axe);
  await show('/runs', '.runs .id');
  found['runs'] = await violations(page, axe);
  const bad = Object.fromEntries(Object.entries(found).filter(([, one]) => one.length > 0));
  expect(bad).toEqual({});
  expect(faults).toEqual([]);
  await page.close();
  await desk.client.cancel(asking.id);
  await desk.client.cancel(id);
});
