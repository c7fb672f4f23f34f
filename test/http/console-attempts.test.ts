import { randomUUID } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { ModelError } from '../../src/models/model.js';
import { replyCall } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { openConsole, startChromium } from '../support/console-pages.js';
import { type Gate, gate } from '../support/gate.js';
import { type HttpDesk, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;
let browser: Browser | null;
/** Opens when the second attempt at a call may succeed, and a model's second attempt. */
let [calls, replies]: [Gate, Gate] = [gate(), gate()];
let executions = 0;

const fetcher = defineAgent({
  name: 'fetcher',
  instructions: 'x',
  model: 'talk',
  tools: [
    defineTool({
      name: 'fetch',
      description: 'fetches',
      input: z.object({ page: z.string() }),
      effect: 'keyed',
      execute: async ({ page }) => {
        executions += 1;
        if (executions === 1) throw new Error(`the site of ${page} is down`);
        await calls.wait();
        return 'fetched';
      },
    }),
  ],
});

beforeAll(async () => {
  desk = await openHttpDesk(['ann'], {}, { agents: [fetcher] });
  browser = await startChromium();
});

afterAll(async () => {
  await browser?.close();
  await desk?.close();
});

test('the panel of a step shows its attempts, while it runs and afterward', async (context) => {
  [calls, replies, executions] = [gate(), gate(), 0];
  const [id, message] = [randomUUID(), `fetch ${randomUUID()}`];
  desk.talker.on(message, async ({ request, number }) => {
    if (request.messages.at(-1)?.role !== 'tool') return replyCall('fetch', { page: 'home' });
    if (number === 2) throw new ModelError('slow down', { kind: 'retry', type: 'rate_limit' });
    await replies.wait();
    return 'read it';
  });
  await desk.client.start('fetcher', { message, id });
  const { page, faults } = await openConsole(context, {
    browser,
    url: desk.url,
    hash: `/run/${id}`,
  });
  const attempts = page.locator('.panel .attempts > div');
  const shown = async (): Promise<readonly string[]> =>
    (await attempts.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '));
  await page.locator('.step.call.busy button').click();
  const failed = expect.stringMatching(/^1 failed at [\d:]+.*: fetch: .*the site of home is down$/);
  await expect
    .poll(shown, { timeout: 30_000 })
    .toEqual([failed, expect.stringMatching(/^2 running for/)]);
  const { inFlight } = (await desk.send(`/v1/runs/${id}`)).body;
  expect(inFlight).toMatchObject([{ attempt: 2, failures: [{ attempt: 1 }] }]);
  calls.release();
  await page.locator('.step.call.good').waitFor();
  // The server keeps the time of a failure only while the call runs.
  await expect
    .poll(shown)
    .toEqual([
      expect.stringMatching(/^1 failed: fetch: .*the site of home is down$/),
      '2 succeeded',
    ]);
  await page.locator('.step.working button').click();
  const limited = expect.stringMatching(/^1 failed at [\d:]+.*: rate_limit: slow down$/);
  await expect
    .poll(shown, { timeout: 30_000 })
    .toEqual([limited, expect.stringMatching(/^2 running for/)]);
  replies.release();
  await page.locator('.answer').waitFor();
  expect(await page.locator('.step.working').count()).toBe(0);
  await expect.poll(shown).toEqual([limited, '2 succeeded']);
  await page.locator('.step.reply button').first().click();
  await expect.poll(shown).toEqual(['1 succeeded']);
  expect(faults).toEqual([]);
  await page.close();
});
