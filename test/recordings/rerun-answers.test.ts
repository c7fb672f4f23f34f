import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Request } from '../../src/core/transcript/request.js';
import { type MemoryOptions, playPartly } from '../../src/memory/run-in-memory.js';
import type { Recording } from '../../src/recordings/recording.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';
import { recordingOf, rerun } from '../../src/recordings/rerun.js';
import {
  type Action,
  approve,
  closeRun,
  deny,
  replyCall,
  replyCalls,
  replyText,
  send,
} from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { useSourceBundle } from '../support/memory.js';

/** Messages that decide about the request that they name. */
beforeAll(useSourceBundle);

const definePay = (approval: 'always' | 'never') =>
  defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ n: z.number() }),
    effect: 'once',
    approval,
    execute: ({ n }) => `paid ${n}`,
  });
const deskWith = (approval: 'always' | 'never'): Agent =>
  defineAgent({ name: 'desk', instructions: 'Help.', tools: [definePay(approval)] });
const desk = deskWith('always');

function saying(message: string, { id: request, digest }: Request): Action {
  return send({ message, answers: { request, digest } });
}

async function record(options: MemoryOptions): Promise<Recording> {
  const { run } = await playPartly(desk, { message: 'Go', ...options });
  return parseRecording(JSON.parse(JSON.stringify(recordingOf(run, { blobs: {} }))));
}

/** As of a version whose recordings do not have what a message decided about. */
function asOlder(recording: Recording): Recording {
  const runs = recording.runs.map((run) => ({
    ...run,
    facts: run.facts.map((fact) => {
      if (fact.type !== 'message') return fact;
      const { about: _about, ...older } = fact;
      return older;
    }),
  }));
  return { ...recording, runs };
}

const paid: MemoryOptions = {
  open: true,
  model: [replyCall('pay', { n: 1 }), replyText('Paid.')],
  on: { request: { pay: (request) => saying('yes', request) }, waiting: [closeRun()] },
};
const FORMS: Readonly<Record<string, MemoryOptions>> = {
  'a call was approved': paid,
  'one of two calls was denied': {
    model: [
      replyCalls([
        { name: 'pay', arguments: { n: 1 } },
        { name: 'pay', arguments: { n: 2 } },
      ]),
      replyText('Paid one.'),
    ],
    on: {
      request: { pay: (request) => (request.id === 'r1' ? approve() : saying('no', request)) },
    },
  },
};

test.each(Object.entries(FORMS))('%s by a message', async (_name, options) => {
  const recording = await record(options);
  const [root] = recording.runs;
  expect(root?.undecided).toEqual([]);
  expect(root?.facts.find(({ type }) => type === 'message')).toMatchObject({
    about: { kind: 'approval', tool: 'pay' },
  });
  for (const form of [recording, asOlder(recording)]) {
    const again = await rerun(form, { agent: desk });
    expect(again.divergence?.text).toBeUndefined();
    expect(again.outcome?.status).toBe('completed');
  }
});

test('a message is made again for a request that has another digest now', async () => {
  const recording = await record(paid);
  const text = JSON.stringify(recording).replaceAll(/"digest":"[0-9a-f]{64}"/g, '"digest":"0"');
  const again = await rerun(parseRecording(JSON.parse(text)), { agent: desk });
  expect(again.divergence?.text).toBeUndefined();
});

test('a message that a run has refused decides nothing in the rerun', async () => {
  const denied = await record({
    ...paid,
    on: { request: { pay: deny() }, waiting: [closeRun()] },
  });
  const [root, ...called] = denied.runs;
  const decided = root?.facts.findIndex(({ type }) => type === 'decision') ?? 0;
  // As of a version that recorded a message by signal with an old digest.
  const refused = {
    type: 'message',
    at: root?.facts[decided]?.at ?? 0,
    message: { message: 'yes', id: 'late', answers: { request: 'r1', digest: '0'.repeat(64) } },
  } as const;
  const facts = root?.facts.toSpliced(decided, 0, refused) ?? [];
  const recording = { ...denied, runs: [...(root ? [{ ...root, facts }] : []), ...called] };
  const again = await rerun(recording, { agent: desk });
  expect(again.divergence?.text).toBeUndefined();
});

test('a message is missed if the rerun does not ask what it answered', async () => {
  const { divergence } = await rerun(await record(paid), { agent: deskWith('never') });
  expect(divergence).toMatchObject({ recorded: { role: 'user', text: 'yes' } });
});
