import { randomUUID } from 'node:crypto';
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { exportRun, status } from '../../src/cli/commands/status.js';
import { replay } from '../../src/cli/commands/replay.js';
import { transcript } from '../../src/cli/commands/transcript.js';
import type { Command } from '../../src/cli/context.js';
import type { RunStatus, TranscriptPage } from '../../src/core/state/status.js';
import type { Model } from '../../src/models/model.js';
import { createGate, type Gate } from '../../src/testing/play.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { commandLine, type FollowedCommand } from '../support/command.js';
import { replyTo, untilStatus } from '../support/conversation.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

const address = inject('temporalAddress');
const command = await commandLine();
let rig: Rig;
const gates = new Map<string, Gate>();
/** The id of an open run with two turns in several segments. */
let id: string;

const note = defineTool({
  name: 'note',
  description: 'writes a text down',
  input: z.object({ text: z.string() }),
  effect: 'keyed',
  execute: ({ text }) => `noted ${text}`,
});
const model: Model = {
  async call(request, { signal }) {
    const text = request.messages.findLast(({ role }) => role === 'user')?.text ?? '';
    await gates.get(text)?.wait(signal);
    return replyTo(request);
  },
};

beforeAll(async () => {
  rig = await createRig();
  const agent = defineAgent({ name: 'clerk', instructions: 'x', model: 'm', tools: [note] });
  await rig.worker([agent], { models: { m: model }, segment: { steps: 3, bytes: 1_000_000 } });
  const handle = await rig.start({ agent: 'clerk', open: true, message: 'steps 5' });
  id = handle.workflowId;
  await untilStatus(handle, 'waiting_message');
});
afterAll(async () => await rig.close());

function perdure(...args: readonly string[]): FollowedCommand {
  return command.here([...args, '--address', address, '--task-queue', rig.taskQueue]);
}

async function does<Options>(
  what: Command<Options>,
  options: Options,
  how: { readonly json?: boolean; readonly home?: string } = {},
): Promise<CommandOutput> {
  return await runInProcess(what, options, {
    address,
    taskQueue: rig.taskQueue,
    home: rig.home,
    ...how,
  });
}

/** Returns a command that also adds what it notes to a list, which an error of the command leaves. */
function withNotes<Options>(what: Command<Options>, notes: string[]): Command<Options> {
  return {
    run: async (context, options) =>
      await what.run({ ...context, note: (line) => notes.push(line) }, options),
  };
}

async function pageOf(options: { from?: number; until?: number } = {}): Promise<TranscriptPage> {
  const { stdout } = await does(transcript, { id, ...options }, { json: true });
  return JSON.parse(stdout) as TranscriptPage;
}

describe('a command that follows a turn', () => {
  test('shows each step once, in order, across segments', async () => {
    const text = `steps 6 ${randomUUID()}`;
    const gate = createGate();
    gates.set(text, gate);
    const sender = perdure('send', id, text, '--json');
    await gate.barrier.reached;
    const follower = perdure('attach', id, '--json');
    await follower.prints(`run ${id}`);
    await follower.prints('read what it did before with: ');
    gate.barrier.release();
    for (const end of await Promise.all([sender.ended, follower.ended])) {
      expect(JSON.parse(end.stdout)).toMatchObject({
        id,
        turn: 2,
        status: 'completed',
        answer: `done: ${text}`,
        steps: 7,
      });
      const steps = end.stderr.match(/^step \d+ · note steps 6 /gm) ?? [];
      expect(steps.map((line) => line.slice(0, 6))).toEqual(
        Array.from({ length: 6 }, (_, index) => `step ${index + 1}`),
      );
      expect(end.code).toBe(0);
    }
  });
});

describe('a run in several segments', () => {
  test('shows the number of segments in its status, and counts from its start', async () => {
    const found = JSON.parse((await does(status, { id }, { json: true })).stdout) as RunStatus;
    expect(found).toMatchObject({ status: 'waiting_message' });
    expect(found.segments).toBeGreaterThan(3);
    const shown = (await does(status, { id })).stdout;
    expect(shown).toMatch(new RegExp(`^started .*ago; in ${found.segments} segments$`, 'm'));
  });

  test('has all messages in its transcript, or a range of them', async () => {
    const { messages, total } = await pageOf();
    expect(messages.map(({ n }) => n)).toEqual(Array.from({ length: total }, (_, n) => n));
    expect(messages[0]).toMatchObject({ role: 'user', text: 'steps 5', turn: 1 });
    const part = await pageOf({ from: 2, until: 6 });
    expect(part).toEqual({ messages: messages.slice(2, 6), total });
  });

  test('shows where its newest segment begins, and where it was summarized', async () => {
    const { stdout } = await does(transcript, { id });
    expect(stdout.match(/^--- segment \d+ begins ---$/gm)).toHaveLength(1);
    expect((await does(transcript, { id, until: 2 })).stdout).not.toContain('--- segment');
  });

  test('is exported segment by segment; each replays', async () => {
    const out = join(rig.home, 'run.json');
    const { segments } = JSON.parse(
      (await does(status, { id }, { json: true })).stdout,
    ) as RunStatus;
    const all = await does(exportRun, { id, out, allSegments: true }, { json: true });
    const { files } = JSON.parse(all.stdout) as { files: { segment: number; file: string }[] };
    expect(files.map(({ segment }) => segment)).toEqual(
      Array.from({ length: segments }, (_, index) => index + 1),
    );
    const names = files.map(({ file }) => file);
    expect(names[1]).toBe(join(rig.home, 'run-2.json'));
    const replayed = await does(replay, { file: names });
    expect({ code: replayed.code, lines: replayed.stdout.split('\n').length }).toEqual({
      code: 0,
      lines: segments,
    });
    const second = await does(exportRun, { id, segment: 2 });
    expect(JSON.parse(second.stdout)).toEqual(JSON.parse(await readFile(names[1] ?? '', 'utf8')));
    const newest = await does(exportRun, { id });
    expect(newest.stderr).toContain(`the newest of ${segments} segments`);
    expect(JSON.parse(newest.stdout)).toEqual(
      JSON.parse(await readFile(names.at(-1) ?? '', 'utf8')),
    );
  });

  test('is exported as a whole or not at all, and the same command with --force does it', async () => {
    const folder = join(rig.home, 'half');
    await mkdir(folder);
    const out = join(folder, 'run.json');
    const taken = join(folder, 'run-2.json');
    await writeFile(taken, 'mine');
    const all = { id, out, allSegments: true } as const;
    await expect(does(exportRun, all)).rejects.toThrow(`got ${taken}, which exists`);
    expect(await readdir(folder)).toEqual(['run-2.json']);
    expect(await readFile(taken, 'utf8')).toBe('mine');
    // A folder is in the way of one segment.
    await rm(taken);
    await mkdir(taken);
    const notes: string[] = [];
    const half = withNotes(exportRun, notes);
    await expect(does(half, all)).rejects.toThrow(`--out: expected a writable file, got ${taken}`);
    expect(notes.join('\n')).toContain(
      `Written: ${join(folder, 'run-1.json')}, and no other segment. Once all files can be written, the same command with --force writes them.`,
    );
    expect((await readdir(folder)).toSorted()).toEqual(['run-1.json', 'run-2.json']);
    await rm(taken, { recursive: true });
    expect((await does(exportRun, { ...all, force: true })).code).toBe(0);
    expect((await readdir(folder)).filter((name) => name.endsWith('.part'))).toEqual([]);
    expect(JSON.parse(await readFile(taken, 'utf8'))).toHaveProperty('events');
  });

  test.each([
    [{ allSegments: true }, '--all-segments: expected --out FILE, got none'],
    [{ segment: 0 }, '--segment: expected a whole number from 1, got 0'],
    [{ segment: 1.5 }, '--segment: expected a whole number from 1, got 1.5'],
    [
      { segment: 1, allSegments: true, out: 'x' },
      '--segment: expected no --all-segments, got both',
    ],
    [{ segment: 99 }, /^--segment: expected 1 to \d+, got 99; the run has /],
  ])('is not exported as %j', async (options, why) => {
    await expect(does(exportRun, { id, ...options })).rejects.toThrow(why);
  });
});
