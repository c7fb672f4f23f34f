import { afterEach, beforeEach, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { approve } from '../../src/cli/commands/approve.js';
import { resume } from '../../src/cli/commands/pause.js';
import { status as statusCommand } from '../../src/cli/commands/status.js';
import { toRunStatus } from '../../src/client/status.js';
import { readRun } from '../../src/history/read-run.js';
import { sha256Hex, type JsonObject } from '../../src/core/text/json.js';
import type { Decision } from '../../src/core/transcript/request.js';
import type { ModelEntry } from '../../src/models/model-entry.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { replyComputer, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { screenshot } from '../../src/tools/built-in/artifact.js';
import {
  cancelTurnUpdate,
  closeUpdate,
  pauseUpdate,
  resumeUpdate,
  resolveUpdate,
} from '../../src/workflows/messages/definitions.js';
import { ask, decide, outcomeOf, statusOf, untilStatus } from '../support/conversation.js';
import { historyBytes } from '../support/history-text.js';
import { runInProcess } from '../support/in-process.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { createRig, type Rig } from '../support/rig.js';
import { messagesIn, segmentsOf } from '../support/segments.js';

/** Looks different each time, and its first bytes are those of a PNG. */
function picture(number: number, bytes = 64): Buffer {
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(bytes, number)]);
}

type Done = Readonly<{ action: unknown; key: string }>;

let rig: Rig;
let stub: Stub;
let done: Done[];
let size: number;
beforeEach(async () => {
  [rig, stub, done, size] = [await createMemoryRig(), await startStub(), [], 64];
});
afterEach(async () => {
  await rig.close();
  await stub.close();
});

const screen = defineTool({
  name: 'screen',
  description: 'Acts on the screen.',
  input: z.looseObject({}),
  effect: 'keyed',
  retry: { attempts: 1 },
  async execute(action, { idempotencyKey: key }) {
    if (action['type'] === 'wait') throw new Error('the browser is gone');
    done.push({ action, key });
    return screenshot(picture(done.length, size), { text: `shot ${done.length}` });
  },
});

const computer: JsonObject = { type: 'computer_use_preview', handler: 'screen' };

function clerk(native: JsonObject = computer, rest: object = {}) {
  return defineAgent({
    name: 'clerk',
    instructions: 'Click.',
    model: 'm',
    tools: [screen],
    settings: { nativeTools: [native] },
    ...rest,
  });
}

async function work(agent = clerk(), rest: object = {}): Promise<void> {
  const entry: ModelEntry = {
    api: 'responses',
    model: 'computer-use-preview',
    baseUrl: stub.baseUrl,
  };
  await rig.worker([agent], { models: { m: entry }, ...rest });
}

const click: JsonObject = { type: 'click', button: 'left', x: 10, y: 20 };
const checks: readonly JsonObject[] = [
  { id: 'sc_1', code: 'malicious_instructions', message: 'The page gives \u001b[2Jorders.' },
  { id: 'sc_2', code: 'irrelevant_domain', message: null },
];

type Item = Record<string, unknown>;

function inputs(): readonly (readonly Item[])[] {
  return stub.requests.map(({ body }) => body['input'] as readonly Item[]);
}

/** Items of the newest request, with pictures as their digests. */
function last(): readonly Item[] {
  return (inputs().at(-1) ?? []).map((item) => {
    const { output } = item;
    if (typeof output !== 'object' || output === null || !('image_url' in output)) return item;
    return { ...item, output: { ...output, image_url: sha256Hex(String(output.image_url)) } };
  });
}

function expectStablePrefix(): void {
  const texts = inputs().map((items) => items.map((item) => JSON.stringify(item)));
  for (const [index, items] of texts.entries()) {
    if (index > 0) expect(items.slice(0, texts[index - 1]?.length)).toEqual(texts[index - 1]);
  }
}

function shown(number: number): string {
  return sha256Hex(`data:image/png;base64,${picture(number, size).toString('base64')}`);
}

/** A run that waits for a person to check its first action. */
async function doubtful(rest: JsonObject = {}) {
  stub.script(replyComputer(click, { checks, reasoning: 'I click.' }));
  const handle = await rig.start({ agent: 'clerk', message: 'Order it.', ...rest });
  const status = await untilStatus(handle, 'waiting_decision');
  return { handle, status };
}

async function outputOf(id: string) {
  return toRunStatus(await readRun(rig.client, id), Date.now());
}

test('actions are calls of the handler, and screenshots are sent back with the pending items', async () => {
  size = 100_000;
  await work();
  stub.script(
    replyComputer({ type: 'screenshot' }, { reasoning: 'Let me see.' }),
    replyComputer(click, { text: 'I click.' }),
    replyComputer(click),
    replyText('Done.'),
  );
  const { outcome, history, projection } = await rig.run({ agent: 'clerk', message: 'Order it.' });
  expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.', steps: 4 });
  // The same click twice is two clicks, each with its own key.
  expect(done.map(({ action }) => action)).toEqual([{ type: 'screenshot' }, click, click]);
  expect(new Set(done.map(({ key }) => key)).size).toBe(3);
  expectStablePrefix();
  expect(stub.requests[0]?.body).toMatchObject({
    truncation: 'auto',
    tools: [
      { name: 'read_result' },
      {
        type: 'computer_use_preview',
        display_width: 1280,
        display_height: 800,
        environment: 'browser',
      },
    ],
  });
  expect(last()).toMatchObject([
    { role: 'user' },
    { type: 'reasoning' },
    {
      type: 'computer_call',
      id: 'cu_stub',
      call_id: 'call_1_1_0',
      action: { type: 'screenshot' },
      pending_safety_checks: [],
    },
    {
      type: 'computer_call_output',
      call_id: 'call_1_1_0',
      output: { type: 'computer_screenshot', image_url: shown(1) },
    },
    { role: 'user', content: expect.stringContaining('shot 1') },
    { type: 'computer_call', call_id: 'call_1_2_0', action: click },
    { type: 'message', role: 'assistant' },
    { type: 'computer_call_output', output: { image_url: shown(2) } },
    { role: 'user' },
    { type: 'computer_call', call_id: 'call_1_3_0' },
    { type: 'computer_call_output', output: { image_url: shown(3) } },
    { role: 'user' },
  ]);
  expect(projection.messages.filter(({ role }) => role === 'tool')).toMatchObject([
    {
      text: '[screenshot: image/png, 100.0 kB]\nshot 1',
      attachments: [{ mediaType: 'image/png' }],
    },
    {},
    {},
  ]);
  // Pictures are in the blob store.
  expect(historyBytes(history)).toBeLessThan(40_000);
  stub.assertConsumed();
});

test('actions in one batch are one call, streamed or not', async () => {
  rig = await rig.close().then(() => createRig());
  await work(clerk({ type: 'computer', handler: 'screen' }), { live: {} });
  const actions = [click, { type: 'type', text: 'hello' }];
  stub.script(replyComputer(actions, { sse: { charactersPerEvent: 3 } }), replyText('Done.'));
  const { outcome } = await rig.run({ agent: 'clerk', message: 'Order it.' });
  expect(outcome).toMatchObject({ status: 'completed', steps: 2 });
  expect(done.map(({ action }) => action)).toEqual([{ actions }]);
  expect(stub.requests[0]?.body).toMatchObject({ tools: [{}, { type: 'computer' }] });
  expect(stub.requests[0]?.body).not.toHaveProperty('truncation');
});

test('an action that fails is sent back as a failed call, since the API requires a screenshot', async () => {
  await work();
  stub.script(replyComputer({ type: 'wait' }, { reasoning: 'Hm.' }), replyText('A pity.'));
  const { outcome } = await rig.run({ agent: 'clerk', message: 'Order it.' });
  expect(outcome).toMatchObject({ status: 'completed', answer: 'A pity.' });
  expect(last()).toMatchObject([
    { role: 'user' },
    { type: 'reasoning' },
    { type: 'function_call', name: 'screen', call_id: 'call_1_1_0' },
    { type: 'function_call_output', output: expect.stringContaining('the browser is gone') },
  ]);
});

test('only the first action of a message is executed', async () => {
  await work();
  const more = { type: 'computer_call', id: 'cu_0', call_id: 'x', action: { type: 'move' } };
  const items = [{ ...more, pending_safety_checks: [], status: 'completed' }];
  stub.script(replyComputer(click, { items }), replyText('Done.'));
  await rig.run({ agent: 'clerk', message: 'Order it.' });
  expect(done.map(({ action }) => action)).toEqual([{ type: 'move' }]);
  expect(JSON.stringify(last())).toContain('only one action on the screen per message');
});

test('a suspicious action is executed only after a person has acknowledged its checks', async () => {
  await work();
  const { handle, status } = await doubtful();
  const id = handle.workflowId;
  expect(status).toMatchObject({
    reason: 'safety_check',
    message: expect.stringContaining('malicious_instructions: The page gives \\u001b[2Jorders.'),
    pending: [
      {
        id: 'r1',
        kind: 'safety_check',
        call: 'call_1_1_0',
        tool: 'screen',
        checks: [{ id: 'sc_1' }, { id: 'sc_2' }],
      },
    ],
  });
  const { searchAttributes } = await handle.describe();
  expect(searchAttributes).toMatchObject({ AgentReason: ['safety_check'] });
  // The next worker has to find the question in the history.
  await rig.stopWorkers();
  await work();
  expect(await statusOf(handle)).toMatchObject({
    status: 'waiting_decision',
    reason: 'safety_check',
  });
  const read = await outputOf(id);
  expect(read).toMatchObject({ status: 'waiting_decision', reason: 'safety_check' });
  expect(read.message).toBe(status.message);
  expect(read.pending).toEqual(status.pending);
  expect(done).toEqual([]);
  stub.script(replyText('Ordered.'));
  await decide(handle, { as: 'approve' });
  const { outcome, projection } = await rig.end(handle);
  expect(outcome).toMatchObject({ status: 'completed', answer: 'Ordered.' });
  expect(done.map(({ action }) => action)).toEqual([click]);
  expect(projection.blocked.size).toBe(0);
  expect(last()).toMatchObject([
    { role: 'user' },
    { type: 'reasoning' },
    { type: 'computer_call', pending_safety_checks: checks },
    {
      type: 'computer_call_output',
      call_id: 'call_1_1_0',
      acknowledged_safety_checks: checks,
      output: { image_url: shown(1) },
    },
    { role: 'user' },
  ]);
  stub.assertConsumed();
});

test('an action that a person denies is not executed, and the model gets the reason', async () => {
  await work();
  const { handle } = await doubtful();
  stub.script(replyComputer({ type: 'screenshot' }), replyText('Not ordered.'));
  await decide(handle, { as: 'deny', note: 'not this shop' });
  const { outcome } = await rig.end(handle);
  expect(outcome).toMatchObject({ status: 'completed', answer: 'Not ordered.', steps: 3 });
  expect(done.map(({ action }) => action)).toEqual([{ type: 'screenshot' }]);
  expectStablePrefix();
  expect(last()[2]).toMatchObject({ type: 'function_call', call_id: 'call_1_1_0' });
  expect(last()[3]).toMatchObject({
    output: expect.stringContaining('a person denied it: not this shop'),
  });
  expect(JSON.stringify(inputs())).not.toContain('acknowledged_safety_checks');
});

const OTHER_WORDS: readonly (readonly [Partial<Decision>, string])[] = [
  [{ as: 'happened', result: 'x' }, 'expected one of approve, deny for r1, got "happened"'],
  [{ as: 'edit', arguments: {} }, 'expected one of approve, deny for r1, got "edit"'],
  [{ as: 'approve', grant: { scope: 'tool' } }, 'expected only for the approval'],
  [{ as: 'approve', digest: 'f'.repeat(64) }, 'digest: expected the current digest of r1'],
  [{ as: 'approve', request: 'r9' }, 'expected an open request, got "r9"'],
];

test('no other word decides about it', async () => {
  await work();
  const { handle, status } = await doubtful();
  const [{ id, digest } = { id: '', digest: '' }] = status.pending;
  for (const [given, words] of OTHER_WORDS) {
    const decision: Decision = { request: id, digest, as: 'approve', ...given };
    await expect(handle.executeUpdate(resolveUpdate, { args: [decision] })).rejects.toMatchObject({
      cause: expect.objectContaining({ message: expect.stringContaining(words) }),
    });
    expect(await statusOf(handle)).toMatchObject({ reason: 'safety_check' });
  }
  await handle.cancel();
  const { outcome } = await rig.end(handle);
  expect(outcome.status).toBe('cancelled');
  expect(done).toEqual([]);
});

test('the commands show the question, refuse a retry, and accept the answer', async () => {
  await work();
  const { handle, status } = await doubtful();
  const id = handle.workflowId;
  const { client, home, taskQueue } = rig;
  const place = { client, home, taskQueue, address: inject('temporalAddress') };
  const { stdout } = await runInProcess(statusCommand, { id }, place);
  expect(stdout).toMatch(/waiting_decision \(safety_check\)/);
  expect(stdout).toContain('malicious_instructions: The page gives');
  const [{ fix, digest, shown: lines } = { fix: '', digest: '', shown: '' }] = status.pending;
  expect(stdout).toContain(fix);
  expect(fix).toBe(`perdure approve ${id} r1 --digest ${digest.slice(0, 12)}`);
  expect(lines).toContain('x: 10');
  expect(stdout).not.toContain('--as happened');
  expect(stdout).not.toContain('\u001b[2J');
  await expect(runInProcess(resume, { id }, place)).rejects.toThrow('waits for a decision');
  stub.script(replyText('Ordered.'));
  await runInProcess(approve, { id, request: 'r1', digest: digest.slice(0, 12) }, place);
  expect((await rig.end(handle)).outcome.answer).toBe('Ordered.');
});

test('an acknowledgment during a pause takes effect when the run resumes', async () => {
  await work();
  const { handle } = await doubtful();
  await handle.executeUpdate(pauseUpdate, { args: [{}] });
  await decide(handle, { as: 'approve' });
  expect(await statusOf(handle)).toMatchObject({ status: 'paused', pending: [] });
  expect(await outputOf(handle.workflowId)).toMatchObject({ status: 'paused', pending: [] });
  stub.script(replyText('Ordered.'));
  expect(done).toEqual([]);
  await handle.executeUpdate(resumeUpdate, { args: [{}] });
  const { outcome } = await rig.end(handle);
  expect(outcome.answer).toBe('Ordered.');
  expect(done).toHaveLength(1);
});

test('a turn that is canceled while it waits executes nothing, and the run continues', async () => {
  await work();
  const { handle } = await doubtful({ open: true });
  await handle.executeUpdate(cancelTurnUpdate, { args: [{}] });
  expect(await outcomeOf(handle, 1)).toMatchObject({ status: 'cancelled' });
  stub.script(replyText('Well then.'));
  await ask(handle, 'Leave it.');
  expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'Well then.' });
  expect(await outputOf(handle.workflowId)).toMatchObject({
    pending: [],
    status: 'waiting_message',
  });
  expect(done).toEqual([]);
  expect(last()).toMatchObject([
    { role: 'user' },
    { type: 'reasoning' },
    { type: 'function_call' },
    { type: 'function_call_output' },
    { role: 'user' },
  ]);
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await rig.end(handle);
});

test('a full segment ends while a person is asked, and the pictures continue in the next one', async () => {
  await work(clerk(), { segment: { steps: 1, bytes: 2_000_000 } });
  stub.script(replyComputer({ type: 'screenshot' }));
  const { handle } = await doubtful();
  const before = (await handle.describe()).runId;
  expect((await outputOf(handle.workflowId)).segments).toBe(3);
  stub.script(replyComputer(click), replyText('Ordered.'));
  await vi.waitFor(async () => expect(await statusOf(handle)).toMatchObject({ step: 2 }), {
    timeout: 40_000,
    interval: 50,
  });
  await decide(handle, { as: 'approve' });
  await handle.result();
  expect(before).not.toBe((await handle.describe()).runId);
  expectStablePrefix();
  const pictures = last().filter(({ type }) => type === 'computer_call_output');
  expect(pictures.map(({ output }) => (output as Item)['image_url'])).toEqual([1, 2, 3].map(shown));
  const segments = await segmentsOf(rig.client, handle.workflowId);
  expect(messagesIn(segments).filter(({ role }) => role === 'tool')).toHaveLength(3);
  stub.assertConsumed();
});
