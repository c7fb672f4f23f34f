import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Limits } from '../../src/core/definition/definition.js';
import type { RunInput } from '../../src/core/input/input.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { openAiModel } from '../../src/models/openai/model.js';
import {
  replyCalls,
  replyCompletion,
  replyError,
  replyRaw,
  replyReset,
  replyText,
  type Reply,
} from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { blocked } from '../support/conversation.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';

let rig: Rig;
let stub: Stub;

const echo = defineTool({
  name: 'echo',
  description: 'says it again',
  input: z.object({ text: z.string() }),
  effect: 'read',
  execute: async ({ text }) => text,
});

beforeAll(async () => {
  [rig, stub] = [await createRig(), await startStub()];
  const agent = defineAgent({ name: 'a', instructions: 'hi', model: 'm', tools: [echo] });
  await rig.worker([agent], { models: { m: openAiModel({ baseUrl: stub.baseUrl }) } });
});
afterAll(async () => {
  await rig.close();
  await stub.close();
});

let serial = 0;
/** A run whose model answers with this script, in its own conversation. */
async function start(
  steps: readonly Reply[],
  limits?: Limits,
  settings: Partial<Pick<RunInput, 'modelAttempts'>> = {},
): Promise<{ handle: WorkflowHandle; marker: string }> {
  const marker = `conversation-${(serial += 1)}-`;
  stub.scriptFor(marker, ...steps);
  return {
    handle: await rig.start({
      agent: 'a',
      message: marker,
      ...(limits && { limits }),
      ...settings,
    }),
    marker,
  };
}

async function run(
  ...given: Parameters<typeof start>
): Promise<Ended & { readonly requests: number }> {
  const { handle, marker } = await start(...given);
  const ended = await rig.end(handle);
  return { ...ended, requests: stub.requests.filter(({ text }) => text.includes(marker)).length };
}

const calling = (name: string, args: string | Record<string, string>): Reply =>
  replyCalls([{ name, arguments: args }]);
const soon = { headers: { 'retry-after-ms': '10' } };

describe('a model that', () => {
  test('never stops calling tools ends at its cap, with an answer', async () => {
    const steps = Array.from({ length: 4 }, (_, n) => calling('echo', { text: `${n}` }));
    const { outcome, requests } = await run([...steps, replyText('enough')], { steps: 4 });
    expect(outcome).toMatchObject({
      status: 'stopped',
      reason: 'steps',
      answer: 'enough',
      steps: 4,
    });
    expect(requests).toBe(5);
  });

  test('calls an unknown tool gets the names of the known ones', async () => {
    const { outcome, projection } = await run([calling('ehco', { text: 'x' }), replyText('ok')]);
    expect(outcome).toMatchObject({ status: 'completed', toolCalls: 0 });
    expect(projection.state?.transcript.messages[2]?.text).toMatch(/unknown_tool.*echo/);
  });

  test('sends broken JSON, or invalid arguments, gets the position of the error', async () => {
    const { outcome, projection } = await run([
      calling('echo', '{"text": "x'),
      calling('echo', { txt: 'x' }),
      calling('echo', { text: 'x' }),
      replyText('ok'),
    ]);
    const results = projection.state?.transcript.messages.filter(({ role }) => role === 'tool');
    expect(results?.map(({ text }) => text)).toEqual([
      expect.stringMatching(/invalid_json.*too early/s),
      expect.stringMatching(/invalid_arguments.*txt.*text/s),
      'x',
    ]);
    expect(outcome).toMatchObject({ status: 'completed', toolCalls: 1 });
  });

  test('answers nothing is called three times, then the turn fails', async () => {
    const nothing = replyText('', soon);
    const { outcome, requests } = await run([nothing, nothing, nothing]);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect(requests).toBe(3);
  });

  test('writes calls that its server cannot read is sampled three times, then the turn fails', async () => {
    const refused = replyError(
      400,
      { code: 'tool_use_failed', message: 'Failed to call a function.' },
      soon,
    );
    const again = await run([refused, replyText('', soon), replyText('it is 7')]);
    expect(again.outcome).toMatchObject({ status: 'completed', answer: 'it is 7', steps: 1 });
    const { outcome, requests } = await run([refused, refused, refused]);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect(outcome.error).toContain('the server could not read what the model wrote');
    expect(requests).toBe(3);
  });

  test('is down fails the turn of a run with a limit of three tries', async () => {
    const down = replyError(503, { message: 'overloaded', ...soon });
    const { outcome, requests, history } = await run([down, down, down], undefined, {
      modelAttempts: 3,
    });
    expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect(outcome.error).toMatch(/overloaded/);
    expect(requests).toBe(3);
    const calls = (history.events ?? []).flatMap(
      ({ activityTaskScheduledEventAttributes: scheduled }) => scheduled?.activityType?.name ?? [],
    );
    expect(calls).toEqual(['callModel']);
  });

  test('rejects its key fails the turn at once if the run does not wait', async () => {
    const refused = replyError(401, { message: 'bad key' });
    const { outcome, requests } = await run([refused], undefined, { modelAttempts: 3 });
    expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect(requests).toBe(1);
  });

  test.each([
    [
      'refuses',
      replyCompletion({
        choices: [
          { message: { role: 'assistant', content: null, refusal: 'no' }, finish_reason: 'stop' },
        ],
      }),
      'refused',
    ],
    ['is filtered', replyText('', { finish: 'content_filter' }), 'filtered'],
    ['is cut off', replyText('half a', { finish: 'length' }), 'truncated'],
    [
      'has no room',
      replyError(400, { code: 'context_length_exceeded', message: 'too long' }),
      'context_too_long',
    ],
    ['gets a damaged picture', replyError(400, { message: 'Could not process image' }), 'error'],
  ])('%s ends the turn with a reason after one call', async (_what, step, reason) => {
    const { outcome, requests } = await run([step]);
    expect(outcome).toMatchObject({ status: 'failed', reason });
    expect(requests).toBe(1);
  });
});

describe('a provider that', () => {
  test('fails temporarily is retried by Temporal, and every failed attempt leaves a report', async () => {
    const { outcome, requests, projection, history } = await run([
      replyReset(),
      replyRaw('<html>busy</html>', { headers: { 'content-type': 'text/html' } }),
      replyError(
        503,
        { message: 'busy' },
        { headers: { 'retry-after-ms': '30', 'x-request-id': 'r-3' } },
      ),
      replyRaw('{"choices": [', {}),
      replyText('at last'),
    ]);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'at last', steps: 1 });
    expect(requests).toBe(5);
    const scheduled = (history.events ?? []).filter(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'callModel',
    );
    expect(scheduled).toHaveLength(1);
    expect(projection.state?.turn.reports).toMatchObject([
      { type: 'connection_reset', attempt: 1 },
      { type: 'html', attempt: 2 },
      { type: expect.stringContaining('503'), status: 503, attempt: 3, requestId: 'r-3' },
      { type: 'bad_json', attempt: 4 },
    ]);
  });
});

async function statusWhen(handle: WorkflowHandle, reason: string): Promise<RunStatus> {
  return await vi.waitFor(
    async () => {
      const status = await handle.query<RunStatus>('status');
      expect(status).toMatchObject({ status: 'blocked', reason });
      return status;
    },
    { timeout: 20_000, interval: 50 },
  );
}

describe('an error that can be fixed from outside', () => {
  test.each([
    ['quota', replyError(429, { code: 'insufficient_quota', message: 'no money' })],
    ['credentials', replyError(401, { message: 'bad key' })],
    ['model', replyError(404, { code: 'model_not_found', message: 'no such model' })],
    ['bad_request', replyError(400, { message: 'bad parameter' })],
    ['provider', replyError(429, { message: 'later' }, { headers: { 'retry-after': '300' } })],
  ])(
    'blocks the run visibly as %s after one request, and resume continues it',
    async (reason, step) => {
      const { handle, marker } = await start([step, replyText('mended')]);
      const status = await statusWhen(handle, reason);
      expect(status.message).toBeTruthy();
      expect(status.reports).toMatchObject([{ attempt: 1, message: status.message }]);
      expect((await handle.describe()).searchAttributes).toMatchObject({
        AgentStatus: ['blocked'],
        AgentReason: [reason],
      });
      expect(stub.requests.filter(({ text }) => text.includes(marker))).toHaveLength(1);
      await handle.executeUpdate('resume');
      const { outcome } = await rig.end(handle);
      expect(outcome).toMatchObject({ status: 'completed', answer: 'mended', steps: 1 });
      expect(stub.requests.filter(({ text }) => text.includes(marker))).toHaveLength(2);
    },
  );

  test('is probed by a blocked run itself, without further events while it stays blocked', async () => {
    const refused = replyError(401, { message: 'bad key' });
    const { handle } = await start([refused, replyText('mended')]);
    await statusWhen(handle, 'credentials');
    const { outcome, history } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'mended' });
    const scheduled = (history.events ?? []).filter(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'callModel',
    );
    expect(scheduled).toHaveLength(2);
  });

  test('does not prevent a cancel of the blocked run', async () => {
    const { handle } = await start([replyError(401, { message: 'bad key' })]);
    await statusWhen(handle, 'credentials');
    await handle.cancel();
    expect((await rig.end(handle)).outcome).toMatchObject({ status: 'cancelled', steps: 0 });
  });

  test('does not block a closing call: the answer is composed instead', async () => {
    const { outcome } = await run(
      [calling('echo', { text: 'found it' }), replyError(401, { message: 'bad key' })],
      { steps: 1 },
    );
    expect(outcome).toMatchObject({ status: 'stopped', reason: 'steps' });
    expect(outcome.answer).toContain('found it');
  });
});

test('a run that only one of two workers can continue says what the other lacks, and is continued by it', async () => {
  const mixed = await createRig();
  onTestFinished(() => mixed.close());
  stub.scriptFor('mixed-config', replyText('done'));
  const bot = defineAgent({ name: 'bot', instructions: 'do', model: 'smart' });
  await mixed.worker([bot]);
  const handle = await mixed.start({ agent: 'bot', message: 'mixed-config' });
  const { reason, message } = await blocked(handle);
  expect([reason, message]).toEqual(['credentials', expect.stringContaining('OPENAI_API_KEY')]);
  expect(message).toMatch(
    /^worker \d+@\S+ \(no entry "smart" in `models` of its config; this run keeps the name: add the entry, or cancel the run and start another\): No model provider is set/,
  );
  await mixed.worker([bot], { models: { smart: openAiModel({ baseUrl: stub.baseUrl }) } });
  const { outcome, history } = await mixed.end(handle);
  expect(outcome.answer).toBe('done');
  const delays = (history.events ?? []).flatMap(
    ({ timerStartedEventAttributes: timer }) => timer?.startToFireTimeout?.seconds ?? [],
  );
  expect(delays.map(Number)).toEqual([1]);
});
