import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { limits } from '../../src/cli/commands/limits.js';
import { attach, fork } from '../../src/cli/commands/run.js';
import { send } from '../../src/cli/commands/send.js';
import { status } from '../../src/cli/commands/status.js';
import { transcript } from '../../src/cli/commands/transcript.js';
import type { Command } from '../../src/cli/context.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { ToolError } from '../../src/tools/errors.js';
import { ask, asking, decide, untilStatus } from '../support/conversation.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let isFixed = false;
let looks = 0;

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ at: z.number() }),
  effect: 'read',
  execute: ({ at }) => `seen ${at}`,
});
/** Fails at each of its attempts. */
const retried = defineGraph({
  name: 'retried',
  state: z.object({ text: z.string() }),
  messageTo: 'text',
  nodes: ({ run }) => ({
    sum: run({
      attempts: 4,
      run: async () => {
        throw new Error('the ledger is closed. Ask ann for the key.\nAnd more');
      },
    }),
  }),
}).wire({ start: 'sum', edges: { sum: 'end' } });
/** It fails until it is fixed. */
const failing = defineGraph({
  name: 'failing',
  state: z.object({ text: z.string(), answer: z.string().optional() }),
  messageTo: 'text',
  answerFrom: 'answer',
  nodes: ({ run }) => ({
    load: run({ run: async () => ({}) }),
    book: run({
      attempts: 1,
      run: async ({ text }) => {
        if (!isFixed) throw new ToolError('the ledger is closed');
        return { answer: `booked ${text}` };
      },
    }),
  }),
}).wire({ start: 'load', edges: { load: 'book', book: 'end' } });

beforeAll(async () => {
  rig = await createRig();
  const looker = { instructions: 'x', model: 'm', tools: [look] };
  await rig.worker(
    [
      defineAgent({ name: 'looker', ...looker }),
      defineAgent({ name: 'thrifty', ...looker, limits: { run: { steps: 3 } } }),
      defineAgent({ name: 'asker', ...looker, limits: { steps: 2 }, onLimit: 'ask' }),
      failing,
      retried,
    ],
    {
      models: {
        m: {
          call: async ({ tools }) =>
            tools.length > 0 ? replyCall('look', { at: (looks += 1) }) : replyText('so far'),
        },
      },
    },
  );
});
afterAll(async () => await rig.close());

async function does<Options>(what: Command<Options>, options: Options): Promise<CommandOutput> {
  return await runInProcess(what, options, {
    address: inject('temporalAddress'),
    taskQueue: rig.taskQueue,
    home: rig.home,
  });
}

describe('a turn that a limit has stopped', () => {
  test('names the limit of the start of a task run, and a fork that goes on', async () => {
    const { workflowId: id } = await rig.start({
      agent: 'looker',
      message: 'go',
      limits: { steps: 2 },
    });
    const end = await does(attach, { id, wait: true });
    expect(end.code).toBe(6);
    expect(end.stderr).toMatch(
      /^limit steps: \d of 2 used by the turn; set when the run was started\. Go on in a new run, which counts anew, with: .* fork run-\S+ MESSAGE/m,
    );
    expect((await does(status, { id })).stdout).toMatch(
      /^limit +limit steps: \d of 2 used by the turn/m,
    );
    const forked = await does(fork, { run: id, message: ['and', 'now'], wait: true });
    expect(forked.stderr).toMatch(/limit steps: .* the default\./);
  });

  test('names the limit of the whole open run, and the command that raises it', async () => {
    const handle = await rig.start({ agent: 'thrifty', message: 'go', open: true });
    const id = handle.workflowId;
    await untilStatus(handle, 'waiting_message');
    const { stdout } = await does(status, { id });
    expect(stdout).toMatch(
      /limit run\.steps: \d of 3 used by the whole run; set by agent thrifty\. Raise it before the next message with: .* limits run-\S+ --add run\.steps=3/,
    );
    await does(limits, { id, add: { run: { steps: 3 } }, by: 'ann' });
    const more = await does(send, { id, message: ['more'], wait: true });
    expect(more.stderr).toMatch(/limit run\.steps: \d of 6 used by the whole run; set by ann/);
  });
});

test('a decision about a limit that a turn has reached does not raise it in a later one', async () => {
  const handle = await rig.start({ agent: 'asker', message: 'go', open: true });
  const id = handle.workflowId;
  const [first] = (await asking(handle)).pending;
  await decide(handle, { as: 'stop' });
  await untilStatus(handle, 'waiting_message');
  await ask(handle, 'more');
  const [second] = (await asking(handle)).pending;
  expect(second).toMatchObject({ id: 'r2', limit: first?.limit });
  const raise = { id, add: { steps: 2 }, digest: first?.digest ?? '' };
  await expect(does(limits, raise)).rejects.toThrow(
    /^--digest: expected that of request r2 as it is/,
  );
  expect((await asking(handle)).pending).toMatchObject([{ digest: second?.digest }]);
  await does(limits, { ...raise, digest: second?.digest ?? '' });
  expect((await asking(handle)).pending).toMatchObject([{ id: 'r3', limit: { limit: 4 } }]);
});

test('a node that is tried again says why it failed, in the status and while it is followed', async () => {
  const { workflowId: id } = await rig.start({ agent: 'retried', message: 'a table' });
  const following = does(attach, { id, wait: true });
  await expect
    .poll(async () => (await does(status, { id })).stdout, { interval: 100, timeout: 9_000 })
    .toMatch(/^doing +node sum \(.*attempt [2-4].*, after: the ledger is closed\)$/m);
  const { stderr } = await following;
  expect(stderr).toMatch(/^… node sum: attempt [2-4], after: the ledger is closed$/m);
  expect(stderr).toMatch(
    /^After a fix, begin at the node that failed, in a new run, with: .* fork run-\S+ --node sum/m,
  );
});

test('the status of a run whose node has failed names the fork that begins there, which works', async () => {
  const handle = await rig.start({ agent: 'failing', message: 'a table' });
  const id = handle.workflowId;
  await handle.result().catch(() => undefined);
  const { stdout } = await does(status, { id });
  expect(stdout).toMatch(
    /fork run-\S+ --node book.* begin at the node that failed, in a new run, after a fix/,
  );
  isFixed = true;
  const other = `fork-${id}`;
  const at = { run: id, id: other, message: [], node: { node: 'book' }, wait: true };
  const forked = await does(fork, at);
  expect(forked.stdout).toBe('booked a table');
  expect(forked.stderr).not.toContain('--node');
  // The copied message comes first, and the answer of the turn without a message of its own comes last.
  const read = await does(transcript, { id: other });
  const lines = read.stdout.split('\n').filter((line) => /^(#|node|graph| )/.test(line));
  expect(lines).toEqual([
    expect.stringMatching(/^#0 user.* · turn 1 · /),
    '  a table',
    expect.stringMatching(/^node book · begins · /),
    expect.stringMatching(/^node book · .*done · /),
    expect.stringMatching(/^graph · answer of turn 1 · /),
    '  booked a table',
  ]);
  // The answer to a message is a message, and is shown once.
  const again = await rig.start({ agent: 'failing', message: 'a hall' });
  await again.result();
  const own = await does(transcript, { id: again.workflowId });
  expect(own.stdout.match(/booked a hall/g)).toHaveLength(1);
  expect(own.stdout).not.toContain('answer of turn');
});
