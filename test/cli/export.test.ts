import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { audit } from '../../src/cli/commands/audit.js';
import { exportRun } from '../../src/cli/commands/status.js';
import { replay } from '../../src/cli/commands/replay.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { commandLine } from '../support/command.js';
import { runInProcess } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

const address = inject('temporalAddress');
const command = await commandLine();
let rig: Rig;
let handle: WorkflowHandle;
/** The path of the exported history. */
let file: string;

const note = defineTool({
  name: 'note',
  description: 'notes',
  input: z.object({ word: z.string() }),
  effect: 'keyed',
  execute: async ({ word }) => `noted ${word}`,
});

beforeAll(async () => {
  rig = await createRig();
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm', tools: [note] });
  const m = scriptedModel([replyCall('note', { word: 'one' }), replyText('done')]);
  await rig.worker([agent], { models: { m } });
  handle = await rig.start({ agent: 'a', message: 'x' });
  await rig.end(handle);
  await rig.stopWorkers();
  file = join(rig.home, 'history.json');
});
afterAll(async () => await rig.close());

interface RawHistory {
  events: Record<string, Record<string, unknown> | undefined>[];
}

/** Writes a changed copy of the exported history. */
async function tampered(change: (history: RawHistory) => void): Promise<string> {
  const history = JSON.parse(await readFile(file, 'utf8')) as RawHistory;
  change(history);
  return await written(JSON.stringify(history));
}

async function written(text: string): Promise<string> {
  const path = join(rig.home, `${randomUUID()}.json`);
  await writeFile(path, text);
  return path;
}

/** Replays files in this process, one row per file. */
async function replayed(...files: string[]) {
  const { stdout, code } = await runInProcess(
    replay,
    { file: files },
    { home: rig.home, json: true },
  );
  return { code, rows: JSON.parse(stdout) as { ok: boolean; type: string; reason?: string }[] };
}

describe('an exported history', () => {
  test("is identical to that of Temporal's own CLI, on stdout and in a file", async () => {
    const place = { address, home: rig.home, taskQueue: rig.taskQueue };
    const { stdout, code } = await runInProcess(exportRun, { id: handle.workflowId }, place);
    const show = ['workflow', 'show', '--workflow-id', handle.workflowId, '--output', 'json'];
    const shown = await promisify(execFile)(inject('temporalCli'), [...show, '--address', address]);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(shown.stdout));
    const toFile = await runInProcess(exportRun, { id: handle.workflowId, out: file }, place);
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(JSON.parse(stdout));
    expect(toFile.stdout).toBe('');
    expect(toFile.stderr).toMatch(
      new RegExp(`\\d+ events of run ${handle.workflowId} written to `),
    );
    expect([code, toFile.code]).toEqual([0, 0]);
  });

  test('takes the place of no other file, unless it is forced to, and neither does a log', async () => {
    const place = { address, home: rig.home, taskQueue: rig.taskQueue };
    const id = handle.workflowId;
    const out = join(rig.home, 'notes.txt');
    await writeFile(out, 'mine');
    const refusal = `--out: expected a new file, got ${out}, which exists; name another file, or overwrite it with --force`;
    const exported = async (force: boolean) =>
      await runInProcess(exportRun, { id, out, force }, place);
    const logged = async (force: boolean) =>
      await runInProcess(audit, { ids: [id], out, force }, place);
    const numbered = join(rig.home, 'notes-1.txt');
    await writeFile(numbered, 'mine');
    const all = runInProcess(exportRun, { id, out, allSegments: true }, place);
    await expect(all).rejects.toThrow(`got ${numbered}, which exists`);
    for (const each of [exported, logged]) await expect(each(false)).rejects.toThrow(refusal);
    expect(await readFile(out, 'utf8')).toBe('mine');
    for (const each of [exported, logged]) {
      expect((await each(true)).code).toBe(0);
      expect(await readFile(out, 'utf8')).toContain(each === exported ? 'events' : 'hash');
    }
  });

  test('is refused if the file is not writable', async () => {
    const out = join(rig.home, 'nowhere', 'x.json');
    const asked = runInProcess(
      exportRun,
      { id: handle.workflowId, out },
      { address, home: rig.home },
    );
    await expect(asked).rejects.toThrow(`--out: expected a writable file, got ${out}`);
  });

  test('replays offline, even if it ends in the middle of the run', async () => {
    const half = await tampered(({ events }) => events.splice(9));
    const { code, rows } = await replayed(file, half);
    expect(rows).toMatchObject([
      { file, ok: true, type: 'same' },
      { ok: true, type: 'same', events: 9 },
    ]);
    expect(code).toBe(0);
  });

  test('does not replay with another activity in it', async () => {
    const other = await tampered(({ events }) => {
      const scheduled = events.find((event) => event['activityTaskScheduledEventAttributes']);
      Object.assign(scheduled?.['activityTaskScheduledEventAttributes'] ?? {}, {
        activityType: { name: 'callSomething' },
      });
    });
    const { code, rows } = await replayed(other, file);
    expect(rows).toMatchObject([
      {
        ok: false,
        type: 'different',
        reason: expect.stringMatching(/^\[TMPRL1100\].*'callSomething'/),
      },
      { ok: true },
    ]);
    expect(code).toBe(1);
  });

  test('does not replay with missing events', async () => {
    const gap = await tampered(({ events }) => events.splice(5, 3));
    const { code, rows } = await replayed(gap);
    expect(rows).toMatchObject([
      { ok: false, type: 'broken', reason: expect.stringContaining('out of order') },
    ]);
    expect(code).toBe(1);
  });
});

describe('a file that is not a history', () => {
  test.each([
    ['text', 'hello', 'it is not JSON'],
    ['other JSON', '{"name":"x"}', 'it is JSON without a list of events'],
    ['no events', '{"events":[]}', 'it does not begin with the start of a workflow'],
    [
      'odd events',
      '{"events":[{"eventId":"1"}]}',
      'it does not begin with the start of a workflow',
    ],
    ['nothing as an event', '{"events":[null]}', 'its events cannot be read'],
    [
      "another project's run",
      '{"events":[{"eventId":"1","eventType":"EVENT_TYPE_WORKFLOW_EXECUTION_STARTED",' +
        '"workflowExecutionStartedEventAttributes":{"workflowType":{"name":"theirs"}}}]}',
      'it is the history of a workflow of type "theirs"',
    ],
  ])('is refused: %s', async (_what, text, reason) => {
    const { code, rows } = await replayed(await written(text));
    expect(rows).toMatchObject([
      { ok: false, type: 'no_history', reason: expect.stringContaining(reason) },
    ]);
    expect(code).toBe(2);
  });

  test('has a lower precedence than a history that does not replay', async () => {
    const gap = await tampered(({ events }) => events.splice(5, 3));
    expect((await replayed(await written('hello'), gap)).code).toBe(1);
  });
});

test('the command replays without a server, with one line per file', async () => {
  const missing = join(rig.home, 'missing.json');
  const { code, stdout, stderr } = await command.here(['replay', file, missing], {
    env: { TEMPORAL_ADDRESS: '127.0.0.1:1' },
  }).ended;
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(/^ok {9}.*history\.json · \d+ events$/),
    expect.stringMatching(
      /^refused {4}.*missing\.json · not a history: there is no such file; write the history of a run with: /,
    ),
    '',
  ]);
  expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
});
