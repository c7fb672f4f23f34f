import { readdir, readFile } from 'node:fs/promises';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunStatus, TranscriptPage } from '../../src/core/state/status.js';
import { transcriptPage } from '../../src/core/run/status.js';
import type { History } from '../../src/history/history-event.js';
import type { Projection } from '../../src/history/projection.js';
import {
  cancelTurnUpdate,
  pauseUpdate,
  resumeUpdate,
} from '../../src/workflows/messages/definitions.js';
import { clerk } from '../support/clerk.js';
import type { Work } from '../../src/core/state/work.js';
import { ask, obedientModel, outcomeOf, startWith, statusOf } from '../support/conversation.js';
import { compare, readerAt, statusOfReader, type ReaderState } from '../support/oracle.js';
import { expectReaderAgrees } from '../support/reader-agrees.js';
import { createRig, type Rig } from '../support/rig.js';

const FOLDER = new URL('../histories/', import.meta.url);
const WANTED = ['parallel-calls-then-answer.json', 'queued-and-steered.json', 'wait-over.json'];

async function recorded(name: string): Promise<History> {
  return historyFromJSON(JSON.parse(await readFile(new URL(name, FOLDER), 'utf8')));
}

/** Returns the answer of a run that agrees with this reader. */
function answerOf(reader: ReaderState): { status: RunStatus; page: TranscriptPage } {
  const { state } = reader.view;
  if (state === null) throw new Error('the reader has no state');
  return {
    status: statusOfReader({ id: 'run-1', runId: 'r' }, reader),
    page: transcriptPage(state.transcript, { side: true }),
  };
}

/** Falsifies the reader's data; the name is what the oracle has to report. */
const DOCTORED: readonly (readonly [string, (view: Projection) => Partial<Projection>])[] = [
  ['messages.1.text', ({ messages }) => ({ messages: edit(messages, 1, { text: 'forged' }) })],
  ['messages.1.at', ({ messages }) => ({ messages: edit(messages, 1, { at: 1 }) })],
  ['messages.1.turn', ({ messages }) => ({ messages: edit(messages, 1, { turn: 9 }) })],
  ['messages.1.step', ({ messages }) => ({ messages: edit(messages, 1, { step: 9 }) })],
  ['messages.1.calls', ({ messages }) => ({ messages: edit(messages, 1, { calls: [] }) })],
  ['messages.2.callId', ({ messages }) => ({ messages: edit(messages, 2, { callId: 'call_x' }) })],
  ['messages.0:', ({ messages }) => ({ messages: messages.slice(1) })],
  ['turn', change(({ turn }) => ({ turn: { ...turn, number: 9 } }))],
  ['step', change(({ turn }) => ({ turn: { ...turn, spent: { ...turn.spent, steps: 9 } } }))],
  ['limits', change(({ config }) => ({ config: { ...config, limits: { turn: {}, run: {} } } }))],
  [
    'usage',
    change(({ total }) => ({
      total: { ...total, usage: { ...total.usage, inputTokens: total.usage.inputTokens + 1 } },
    })),
  ],
  ['segments', change(({ segments }) => ({ segments: segments + 1 }))],
  ['decisions', change(() => ({ decisions: [{ what: 'pause', id: 'u', at: 1 }] }))],
  ['forkedFrom', change(() => ({ forkedFrom: { run: 'other', runId: 'r', at: 3 } }))],
  [
    'total',
    change(({ transcript }) => ({ transcript: { ...transcript, next: transcript.next + 1 } })),
  ],
  ['in memory', change(({ transcript }) => ({ transcript: { ...transcript, messages: [] } }))],
  ['outcome', ({ outcome }) => ({ outcome: outcome && { ...outcome, steps: 9 } })],
  ['reason', ({ outcome }) => ({ outcome: outcome && { ...outcome, reason: 'closed' as never } })],
  [
    'status',
    ({ state }) => ({
      ended: null,
      state: state && { ...state, turn: { ...state.turn, phase: { type: 'deciding' } } },
    }),
  ],
];

const waitingMessage = { id: 'm', text: 'more', turn: 2 };

type State = NonNullable<Projection['state']>;

function change(patch: (state: State) => Partial<State>) {
  return ({ state }: Projection): Partial<Projection> => ({
    state: state && { ...state, ...patch(state) },
  });
}

function edit(messages: Projection['messages'], n: number, patch: object): Projection['messages'] {
  return messages.map((message) => (message.n === n ? { ...message, ...patch } : message));
}

describe('the oracle', () => {
  test.each(WANTED)('finds nothing if run and reader agree: %s', async (name) => {
    const history = await recorded(name);
    const reader = readerAt(history, Number.MAX_SAFE_INTEGER);
    const { status, page } = answerOf(reader);
    expect(reader.view.messages.length).toBeGreaterThan(1);
    expect(compare(status, page, reader)).toEqual([]);
  });

  test.each(DOCTORED)('names a falsified %s', async (field, doctor) => {
    const reader = readerAt(await recorded('parallel-calls-then-answer.json'), 1_000_000);
    const { status, page } = answerOf(reader);
    const view = { ...reader.view, ...doctor(reader.view) };
    const found = compare(status, page, { ...reader, view });
    expect(found.filter((line) => line.startsWith(field))).not.toEqual([]);
  });

  test('names a falsified queued, of which a run that has ended has none', async () => {
    const reader = readerAt(await recorded('parallel-calls-then-answer.json'), 20);
    const { status, page } = answerOf(reader);
    const falsify = change(({ inbox }) => ({ inbox: { ...inbox, waiting: [waitingMessage] } }));
    const view = { ...reader.view, ...falsify(reader.view) };
    expect(view.ended).toBeNull();
    const found = compare(status, page, { ...reader, view });
    expect(found.filter((line) => line.startsWith('queued'))).not.toEqual([]);
  });

  test.each([
    [
      'request',
      {
        phase: 'asking',
        request: { id: 'r1', kind: 'safety_check', why: 'ask a person', raisedAt: 0 },
      },
    ],
    [
      'block of another kind',
      { phase: 'waiting', block: { reason: 'storage', message: 'the store is down', until: 0 } },
    ],
  ] as const)('names a falsified %s', async (_, blocked) => {
    const history = await recorded('unknown-outcome-resolved-by-result.json');
    const reader = readerAt(history, 20);
    const { status, page } = answerOf(reader);
    const work: readonly Work[] = [{ name: 'call_1_1_0', ...blocked }];
    const view = { ...reader.view, ...change(() => ({ work }))(reader.view) };
    const found = compare(status, page, { ...reader, view });
    expect(found.join('\n')).toMatch(/^(?:status|reason|pending|message): /m);
  });

  test('stops every recorded history after the events of each of its tasks', async () => {
    for (const name of (await readdir(FOLDER)).filter((file) => file.endsWith('.json'))) {
      const history = await recorded(name);
      const all = history.events ?? [];
      all.forEach((event, index) => {
        if (!all[index + 1]?.workflowTaskCompletedEventAttributes) return;
        const { length } = readerAt(history, Number(event.eventId)).events;
        expect(length).toBeGreaterThan(index + 1);
        const next = all[length];
        expect(next?.workflowExecutionUpdateAcceptedEventAttributes ?? null).toBeNull();
        expect(next?.activityTaskScheduledEventAttributes ?? null).toBeNull();
        const isInside = all.slice(index + 1, length).some((one) => {
          const { workflowTaskStartedEventAttributes: started } = one;
          return started ?? one.workflowExecutionSignaledEventAttributes;
        });
        expect(isInside).toBe(false);
      });
    }
  });
});

describe('the history length of a status', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await createRig();
  });
  afterAll(async () => await rig.close());

  test('is the start of the newest task, even on another worker and after a refusal', async () => {
    const work = async () => await rig.worker([clerk()], { models: { m: obedientModel() } });
    await work();
    const { handle } = await startWith(rig, { agent: 'clerk', open: true }, 'steps 1');
    await outcomeOf(handle, 1);
    const lastTask = async (): Promise<number> => {
      const { events } = await handle.fetchHistory();
      return Number(events?.findLast((one) => one.workflowTaskStartedEventAttributes)?.eventId);
    };
    const first = await statusOf(handle);
    expect(first.historyLength).toBe(await lastTask());

    // The server drops a task that only refuses an update; the run cannot know that.
    const refused = handle.executeUpdate(cancelTurnUpdate, { args: [{}] });
    await expect(refused).rejects.toThrow('Update failed');
    const dropped = await statusOf(handle);
    expect(await lastTask()).toBe(first.historyLength);
    expect(dropped.historyLength).toBeGreaterThan(first.historyLength);
    const history = await handle.fetchHistory();
    expect(readerAt(history, dropped.historyLength)).toEqual(
      readerAt(history, first.historyLength),
    );

    await rig.stopWorkers();
    await work();
    expect(await statusOf(handle)).toEqual(first);

    // An update may reuse the ids of the dropped task.
    await handle.executeUpdate(pauseUpdate, { args: [{}] });
    expect((await statusOf(handle)).historyLength).toBe(await lastTask());
    const { events } = readerAt(await handle.fetchHistory(), first.historyLength);
    expect(events.filter(({ type }) => type === 'update')).toHaveLength(2);
  });

  test('is a moment at which a reader agrees with the run, whenever it is queried', async () => {
    await rig.worker([clerk()], { models: { m: obedientModel() } });
    const { handle } = await startWith(rig, { agent: 'clerk', open: true }, 'steps 3');
    await expectReaderAgrees(handle);
    await ask(handle, 'steps 2');
    await expectReaderAgrees(handle);
    await handle.executeUpdate(pauseUpdate, { args: [{}] });
    await expectReaderAgrees(handle);
    await handle.executeUpdate(resumeUpdate, { args: [{}] });
    await outcomeOf(handle, 2);
    await expectReaderAgrees(handle);
    await handle.cancel();
    await handle.result().catch(() => undefined);
    await expectReaderAgrees(handle);
  });
});
