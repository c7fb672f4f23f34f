import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defaultPayloadConverter } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { toolResult } from '../../src/http/mcp-tools.js';
import { main } from '../../src/cli/main.js';
import { escapeHidden, palette } from '../../src/cli/format/format.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { countHidden } from '../../src/core/text/text.js';
import { ModelError, type Model } from '../../src/models/model.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { createRig, type Rig } from '../support/rig.js';

/** Clears the screen, reverses the direction, hides text, and has zero width. */
const HOSTILE = 'x\u001b[2J\u202ey\u200b\u{e0041}\u009b31m\u2066z😀\ufe0f\ufe0f';
const LINK = '[your bank](https://evil.example) <img src=x> `code` ![x](https://evil.example)';
const id = `hostile-${randomUUID()}-${HOSTILE}`;
let rig: Rig;
let client: PerdureClient;

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ what: z.string(), cjk: z.string() }),
  effect: 'read',
  execute: async ({ what }) => {
    if (what.startsWith('fail')) throw new Error(`no ${HOSTILE}`);
    return `found ${HOSTILE}`;
  },
});
const model: Model = {
  async call({ messages }) {
    const [first] = messages;
    if (first?.text.startsWith('keyless') === true) {
      throw new ModelError(HOSTILE, { kind: 'credentials', type: 'http_401', requestId: HOSTILE });
    }
    if (first?.text.startsWith('wrong') === true) {
      throw new ModelError(HOSTILE, { kind: 'request', type: 'http_400' });
    }
    if (messages.some(({ role }) => role === 'tool')) return replyText(`done ${HOSTILE}`);
    const cjk = '漢'.repeat(500);
    return replyCalls(
      [LINK, `fail ${HOSTILE}`].map((what) => ({ name: 'look', arguments: { what, cjk } })),
    );
  },
};

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
  const agent = defineAgent({ name: 'h', instructions: 'x', model: 'm', tools: [look] });
  await rig.worker([agent], { models: { m: model } });
  const message = `${LINK} ${HOSTILE}`;
  const done = await client.start('h', { id, message, tags: [HOSTILE] });
  const wrong = await client.start('h', { id: `${id}-wrong`, message: `wrong ${HOSTILE}` });
  await client.start('h', { id: `${id}-keyless`, message: `keyless ${HOSTILE}` });
  const open = await client.start('h', { id: `${id}-open`, message, open: true });
  await Promise.all([client.result(done), client.result(wrong), client.result(open, { turn: 1 })]);
  await vi.waitFor(
    async () => {
      const { status } = await client.status(`${id}-keyless`);
      if (status !== 'blocked') throw new Error(status);
    },
    { timeout: 40_000, interval: 50 },
  );
});
afterAll(async () => {
  for (const end of ['keyless', 'open']) await client.cancel(`${id}-${end}`);
  await client.disconnect();
  await rig.close();
});

/** Runs the whole program in this process and captures its output. */
async function perdure(...args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    }),
  );
  const address = inject('temporalAddress');
  const place = ['--address', address, '--task-queue', rig.taskQueue];
  try {
    await main([...args, ...place], {
      PERDURE_HOME: rig.home,
      PERDURE_SERVER: 'own',
      NO_COLOR: '1',
    });
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return written;
}

const out = (name: string): string => join(rig.home, name);
/** Every command with hostile input. Long-running commands get arguments that they refuse. */
const COMMANDS: readonly (() => readonly string[])[] = [
  () => ['status', id],
  () => ['status', `${id}-wrong`],
  () => ['status', `${id}-keyless`],
  () => ['status', `${id}-open`],
  () => ['status', `none-${HOSTILE}`],
  () => ['list', '--max', '100'],
  () => ['list', '--status', HOSTILE],
  () => ['list', '--agent', HOSTILE],
  () => ['transcript', id],
  () => ['transcript', id, '--full', '--side'],
  () => ['transcript', id, '--from', HOSTILE],
  () => ['export', id],
  () => ['export', id, '--out', out('run.json')],
  () => ['export', id, '--out', out(`none/${HOSTILE}`)],
  () => ['attach', id],
  () => ['attach', `${id}-keyless`, '--no-wait'],
  () => ['attach', `${id}-open`, '--no-wait'],
  () => ['limits', `${id}-open`],
  () => ['limits', `${id}-open`, '--limit', `steps=${HOSTILE}`],
  () => ['pause', `${id}-open`],
  () => ['resume', `${id}-open`],
  () => ['send', `${id}-open`, HOSTILE, '--message-id', HOSTILE],
  () => ['send', id, HOSTILE],
  () => ['fork', id, HOSTILE, '--id', `${id}-fork`],
  () => ['fork', id, HOSTILE, '--id', id],
  () => ['resolve', id, HOSTILE, '--as', 'abandon'],
  () => ['resolve', id, HOSTILE, '--as', HOSTILE],
  () => ['inbox'],
  () => ['inbox', '--agent', HOSTILE],
  () => ['inbox', id, HOSTILE],
  () => ['approve', `${id}-open`, HOSTILE, '--digest', HOSTILE],
  () => ['approve', `${id}-open`, HOSTILE],
  () => ['deny', `${id}-open`, HOSTILE, '--note', HOSTILE, '--by', HOSTILE],
  () => ['edit', `${id}-open`, HOSTILE, '--arguments', HOSTILE],
  () => ['answer', `${id}-open`, HOSTILE, HOSTILE],
  () => ['limits', `${id}-open`, '--add', `steps=${HOSTILE}`],
  () => ['revoke', `${id}-open`, HOSTILE],
  () => ['undo', `${id}-open`, HOSTILE],
  () => ['pause', '--all', '--agent', HOSTILE],
  () => ['replay', out(HOSTILE)],
  () => ['replay', '--from-server', `${HOSTILE} = 1`],
  () => ['run', 'h', HOSTILE, '--id', `${id}-detached`, '--detach'],
  () => ['run', 'h', HOSTILE, '--id', `${id}-run`],
  () => ['run', HOSTILE, HOSTILE, '--id', `${id}-none`, '--detach'],
  () => ['run', 'h', HOSTILE, '--context', HOSTILE],
  () => ['run', 'h', HOSTILE, '--attach', HOSTILE],
  () => ['close', `${id}-open`],
  () => ['cancel', `${id}-keyless`],
  () => ['cancel', `none-${HOSTILE}`],
  () => ['doctor', '--config', HOSTILE],
  () => ['worker', '--deployment', HOSTILE, '--no-live', '--live-host', HOSTILE],
  () => ['dev', '--live-port', HOSTILE],
  () => ['mcp', '--config', HOSTILE],
  () => ['live-token', id],
  () => ['graph', 'h'],
  () => ['graph', HOSTILE],
  () => ['graph', '--run', id],
  () => ['graph', '--run', HOSTILE],
  () => [HOSTILE],
  () => ['list', `--${HOSTILE}`],
];

/** Line breaks are visible; all other control characters are not. */
const RAW = /(?![\n\t])[\p{Cc}\u200b-\u200f\u202a-\u202e\u2060-\u2069\u{e0000}-\u{e01ef}]/u;

describe('the output of every command', () => {
  test('shows hidden characters of untrusted texts, in JSON as escapes of the same value', async () => {
    let shown = 0;
    for (const args of COMMANDS.map((each) => each())) {
      for (const json of [false, true]) {
        const { stdout, stderr } = await perdure(...args, ...(json ? ['--json'] : []));
        const where = `${args.join(' ')}${json ? ' --json' : ''}`;
        expect(where + RAW.exec(stdout + stderr)?.[0]).toBe(`${where}undefined`);
        expect(countHidden(stdout + stderr)).toBe(0);
        if (json) for (const line of stdout.split('\n')) if (line) isJson(line, stdout);
        shown += (stdout + stderr).includes('\\u202e') ? 1 : 0;
      }
    }
    expect(shown).toBeGreaterThan(COMMANDS.length);
  });

  test('preserves the value in JSON, including an exported history', async () => {
    const status = JSON.parse((await perdure('status', id, '--json')).stdout);
    expect(status).toMatchObject({ id, outcome: { answer: `done ${HOSTILE}` } });
    const { messages } = JSON.parse((await perdure('transcript', id, '--json')).stdout);
    expect(messages).toMatchObject([{ text: `${LINK} ${HOSTILE}` }, {}, {}, {}, {}]);
    await perdure('export', id, '--out', out('again.json'));
    const text = await readFile(out('again.json'), 'utf8');
    expect(countHidden(text)).toBe(0);
    expect(JSON.stringify(JSON.parse(text))).toContain(JSON.stringify(id).slice(1, -1));
  });

  test('preserves our own colors and no others', () => {
    const paint = palette(true);
    const line = `${paint.red('a')}${paint.dim('b')} \u001b[8m\u001b]0;t\u0007`;
    expect(escapeHidden(line, true)).toBe(
      `${paint.red('a')}${paint.dim('b')} \\u001b[8m\\u001b]0;t\\u0007`,
    );
    expect(escapeHidden(paint.red('a'), false)).toBe('\\u001b[31ma\\u001b[39m');
  });

  test('shows them in the text for MCP clients, and has the exact value in their structured content', () => {
    const { content, structuredContent } = toolResult({ id: HOSTILE, output: { a: HOSTILE } });
    expect(countHidden(JSON.stringify(content))).toBe(0);
    expect(structuredContent).toEqual({ id: HOSTILE, output: { a: HOSTILE } });
  });
});

function isJson(line: string, whole: string): void {
  try {
    JSON.parse(line);
  } catch {
    // An exported history has several lines.
    JSON.parse(whole);
  }
}

test('the texts that the Temporal UI shows contain no active Markdown', async () => {
  const handle = rig.client.workflow.getHandle(id);
  const { events } = await handle.fetchHistory();
  const { executionConfig } = await rig.client.workflowService.describeWorkflowExecution({
    namespace: 'default',
    execution: { workflowId: id },
  });
  const payloads = [
    executionConfig?.userMetadata?.summary,
    ...(events ?? []).map(({ userMetadata }) => userMetadata?.summary),
  ].filter((payload) => payload !== null && payload !== undefined);
  const summaries = payloads.map((payload) => String(defaultPayloadConverter.fromPayload(payload)));
  const [ofRun = '', ...ofEvents] = summaries;
  expect(ofRun).toContain('\\[your bank\\]\\(https://evil.example\\) \\<img');
  expect(ofEvents.filter((text) => text.includes('your bank')).length).toBeGreaterThan(0);
  for (const text of ofEvents) {
    expect(text).not.toMatch(/(?<!\\)(?:\]\(|<[a-z]|`)/);
    expect(countHidden(text)).toBe(0);
  }
});
