import { randomUUID } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { cases, defineGraph } from '../../src/graphs.js';
import { openConsole, startChromium } from '../support/console-pages.js';
import { type HttpDesk, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;
let browser: Browser | null;

const writer = defineAgent({ name: 'writer', instructions: 'x', model: 'talk' });

/** Writes, checks three words of which one is bad, and chooses the end. */
const review = defineGraph({
  name: 'review',
  state: z.object({
    words: z.array(z.string()),
    draft: z.string().default(''),
    checked: z.array(z.object({ ok: z.boolean() }).loose()).default([]),
    answer: z.string().default(''),
  }),
  answerFrom: 'answer',
  nodes: ({ agent, choose, each, run }) => ({
    write: agent({ agent: writer, message: () => 'write a draft', save: 'draft' }),
    check: each({
      over: (s) => s.words,
      run: async (_state, word) => {
        if (word === 'bad') throw new Error('a bad word');
        return word;
      },
      save: 'checked',
    }),
    enough: choose({ on: (s) => cases({ none: s.draft.is('') }) }),
    accept: run({ run: async ({ draft }) => ({ answer: `accepted: ${draft}` }) }),
  }),
}).wire({
  start: 'write',
  edges: {
    write: { done: 'check', stopped: 'end', failed: 'end' },
    check: 'enough',
    enough: { none: 'end', else: 'accept' },
    accept: 'end',
  },
});

const counts = defineGraph({
  name: 'counts',
  state: z.object({ answer: z.string().default('') }),
  answerFrom: 'answer',
  nodes: ({ run }) => ({ count: run({ run: async () => ({ answer: 'one' }) }) }),
}).wire({ start: 'count', edges: { count: 'end' } });

beforeAll(async () => {
  desk = await openHttpDesk(['ann'], {}, { agents: [review, counts] });
  browser = await startChromium();
});
afterAll(async () => {
  await browser?.close();
  await desk?.close();
});

test('a graph has each node it has passed, failed items, and the usage that its status states', async (context) => {
  desk.talker.on('write a draft', () => Promise.resolve('the draft'));
  const id = randomUUID();
  await desk.client.run(review, { input: { words: ['good', 'bad', 'fine'] }, id });
  const { page, faults } = await openConsole(context, {
    browser,
    url: desk.url,
    hash: `/run/${id}`,
  });
  await page.locator('.answer').waitFor();
  const labels = (await page.locator('.step.node .label').allInnerTexts()).map((one) => one.trim());
  expect(labels).toEqual([
    expect.stringMatching(/^write → /),
    expect.stringMatching(/^check → \S+ · 3 of 3 items, 1 failed · item 2: a bad word$/),
    'enough → else',
    expect.stringMatching(/^accept → /),
  ]);
  expect(await page.locator('.step.node.bad').count()).toBe(1);
  const { usage } = await desk.client.status(id);
  const tokens = usage.inputTokens + usage.outputTokens;
  expect(tokens).toBeGreaterThan(0);
  expect(await page.locator('.facts').innerText()).toContain(`${tokens} tokens`);
  expect(faults).toEqual([]);
  await page.close();
});

test('a graph that has called no model has no unknown cost', async (context) => {
  const id = randomUUID();
  await desk.client.run(counts, { input: {}, id });
  const { page, faults } = await openConsole(context, {
    browser,
    url: desk.url,
    hash: `/run/${id}`,
  });
  await page.locator('.answer').waitFor();
  expect(await page.locator('.facts').innerText()).toMatch(/0 tokens(?![^]*cost unknown)/);
  expect(faults).toEqual([]);
  await page.close();
});

test('an assistant message that no model of the run wrote says whose it is', async () => {
  const url = new URL('../../console/events.js', import.meta.url).href;
  const { addEvents, emptyView } = await import(url);
  const added = (origin?: string): object => {
    return { type: 'message-added', at: 1, message: { role: 'assistant', text: 'x', origin } };
  };
  const { items } = addEvents(emptyView(), [added('graph'), added()]);
  expect(items).toMatchObject([{ author: 'answer' }, { author: 'assistant' }]);
});

test('the time of a call that a person denies is without the wait for them', async () => {
  const url = new URL('../../console/events.js', import.meta.url).href;
  const { addEvents, emptyView } = await import(url);
  const call = { id: 'c1', name: 'pay', arguments: '{}' };
  const request = { request: 'r1', call: 'c1', kind: 'approval', why: 'a rule' };
  const result = { callId: 'c1', text: '{}', ok: false };
  const { items } = addEvents(emptyView(), [
    { type: 'model-replied', at: 1_000, message: { text: '', calls: [call] } },
    { type: 'request-raised', at: 1_000, ...request },
    { type: 'request-closed', at: 61_000, request: 'r1', as: 'deny', by: 'ann' },
    { type: 'call-finished', at: 61_010, tool: 'pay', message: result },
  ]);
  const denied = items.find(({ type }: { type: string }) => type === 'call');
  expect(denied).toMatchObject({ state: 'failed', from: 61_000, to: 61_010 });
});

test('the call that a node makes itself ends with the node, whose time is not that after a decision', async () => {
  const url = new URL('../../console/events.js', import.meta.url).href;
  const { addEvents, emptyView } = await import(url);
  const call = { id: 'c1', name: 'pay', arguments: '{}' };
  const { items } = addEvents(emptyView(), [
    { type: 'node-begun', at: 1_000, node: 'pay', visit: 1 },
    { type: 'call-begun', at: 1_000, turn: 1, call },
    { type: 'node-ended', at: 1_040, node: 'pay', exit: 'done', ms: 40 },
    { type: 'node-begun', at: 1_040, node: 'ask', visit: 1 },
    { type: 'node-ended', at: 61_080, node: 'ask', exit: 'yes', ms: 40, by: 'ann' },
  ]);
  const made = items.find(({ type }: { type: string }) => type === 'call');
  expect(made).toMatchObject({ state: 'done', to: 1_040 });
  expect(items.at(-1)).toMatchObject({ node: 'ask', to: 61_080, ms: undefined });
});
