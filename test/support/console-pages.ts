import { existsSync } from 'node:fs';
import { type Browser, type Locator, type Page, chromium } from 'playwright-core';
import { type TestContext, expect } from 'vitest';
import { keyOf } from './http-desk.js';

const PATHS = ['/usr/bin/chromium', '/usr/bin/google-chrome'];
const WAIT_MS = 45_000;

/** Starts the Chromium of this machine; null if none is installed. */
export async function startChromium(): Promise<Browser | null> {
  const executablePath = PATHS.find(existsSync);
  if (executablePath === undefined) return null;
  return await chromium.launch({ executablePath, args: ['--no-sandbox'] });
}

/** A page of the console, and what went wrong on it. */
export interface ConsolePage {
  readonly page: Page;
  readonly faults: string[];
}

interface PageOptions {
  readonly browser: Browser | null;
  /** The address of the server. */
  readonly url: string;
  /** What follows the `#` of the address. */
  readonly hash: string;
  readonly width?: number;
  /** Called before anything is loaded. */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

/** Opens a page of the console that asks for a key. Skips the test if there is no browser. */
export async function openLocked(
  context: TestContext,
  { browser, url, hash, width = 1280, prepare }: PageOptions,
): Promise<ConsolePage> {
  if (browser === null) return context.skip('no Chromium is installed: apt-get install chromium');
  const page = await browser.newPage({ viewport: { width, height: 800 } });
  page.setDefaultTimeout(WAIT_MS);
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) faults.push(`requested ${request.url()}`);
  });
  await prepare?.(page);
  await page.goto(`${url}/#${hash}`);
  return { page, faults };
}

/** Opens a page of the console as Ann sees it. */
export async function openConsole(
  context: TestContext,
  options: PageOptions,
): Promise<ConsolePage> {
  const opened = await openLocked(context, options);
  await opened.page.fill('input[name=key]', keyOf('ann'));
  await opened.page.keyboard.press('Enter');
  return opened;
}

/** Waits until a card is rendered again, as it is every second. */
export async function rendersAgain(card: Locator): Promise<void> {
  const age = async (): Promise<string> => await card.locator('time').first().innerText();
  const before = await age();
  await expect.poll(age, { timeout: WAIT_MS }).not.toBe(before);
}
