import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { project } from '../../src/history/projection.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { History } from '../../src/history/history-event.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import { replyText } from '../../src/testing/replies.js';
import type { StubRequest } from '../../src/testing/wire-input.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { replayLater } from '../support/replays.js';

/** Set PERDURE_EXTRACTIONS=1000 for the number that releases are measured with. */
const EXTRACTIONS = Number(process.env['PERDURE_EXTRACTIONS'] ?? 40);
const AT_ONCE = 40;

/** The result of one run, and the content of its history. */
interface Extracted {
  readonly number: number;
  readonly outcome: Outcome | null;
  /** The number of events of each type, without workflow tasks that failed. */
  readonly events: Readonly<Record<string, number>>;
  readonly activities: Readonly<Record<string, number>>;
}

const order = z.object({ order: z.number().int(), item: z.string() });
const isRepaired = (number: number): boolean => number % 3 === 0;
const numberIn = ({ messages }: StubRequest): number =>
  Number(/order (\d+)/.exec(String(messages[1]?.content))?.[1]);

/** Every third first answer is invalid: the number is a text. */
function answer(request: StubRequest): ReturnType<typeof replyText> {
  const number = numberIn(request);
  const isWrong = isRepaired(number) && request.assistantMessages === 0;
  return replyText(
    JSON.stringify({ order: isWrong ? `no. ${number}` : number, item: `item ${number}` }),
  );
}

let rig: Rig;
let stub: Stub;
beforeAll(async () => {
  [rig, stub] = [await createMemoryRig(), await startStub()];
  stub.answer(answer);
  const agent = defineAgent({ name: 'a', instructions: 'extract', model: 'stub', output: order });
  await rig.worker([agent], { env: { PERDURE_HOME: rig.home, OPENAI_BASE_URL: stub.baseUrl } });
});
afterAll(async () => {
  await rig.close();
  await stub.close();
});

async function extract(number: number): Promise<Extracted> {
  const handle = await rig.start({ agent: 'a', message: `order ${number}` });
  await handle.result().catch(() => undefined);
  const history = await handle.fetchHistory();
  if (number <= 3) replayLater(history, handle.workflowId);
  const { outcome } = project((history.events ?? []).map(decodeEvent));
  return { number, outcome, ...eventsOf(history) };
}

/** A busy machine loses workflow tasks, which are retried; only the successful ones are counted. */
const TRIES = /^workflowTask(Scheduled|Started|TimedOut|Failed)EventAttributes$/;

function eventsOf(history: History): Pick<Extracted, 'events' | 'activities'> {
  const events: Record<string, number> = {};
  const activities: Record<string, number> = {};
  for (const event of history.events ?? []) {
    const type = Object.keys(event).find((key) => key.endsWith('Attributes')) ?? 'none';
    if (!TRIES.test(type)) events[type] = (events[type] ?? 0) + 1;
    const name = event.activityTaskScheduledEventAttributes?.activityType?.name;
    if (name) activities[name] = (activities[name] ?? 0) + 1;
  }
  return { events, activities };
}

/** All extractions, 40 runs at a time. */
async function extractAll(): Promise<readonly Extracted[]> {
  const done: Extracted[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < EXTRACTIONS) {
      next += 1;
      // The runs of a lane are sequential.
      // oxlint-disable-next-line no-await-in-loop
      done.push(await extract(next));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return done.toSorted((one, other) => one.number - other.number);
}

describe(`${EXTRACTIONS} extractions over ${AT_ONCE} runs at once`, () => {
  let all: readonly Extracted[];
  beforeAll(async () => {
    all = await extractAll();
  }, 600_000);

  test('loses none and repeats none', () => {
    const numbers = Array.from({ length: EXTRACTIONS }, (_, index) => index + 1);
    expect(all.map(({ outcome }) => outcome?.output)).toEqual(
      numbers.map((number) => ({ order: number, item: `item ${number}` })),
    );
    const repairs = numbers.filter(isRepaired).length;
    expect(stub.requestCount).toBe(EXTRACTIONS + repairs);
    expect(stub.requests.filter(({ attempt }) => attempt > 1)).toEqual([]);
    for (const { outcome, number } of all) {
      expect(outcome?.usage.inputTokens).toBe(isRepaired(number) ? 20 : 10);
      expect(outcome?.steps).toBe(1);
    }
  });

  test('costs one additional model call per repair, and nothing else', () => {
    const [plain] = all;
    if (plain === undefined) throw new Error('nothing was extracted');
    expect(plain.activities).toEqual({ callModel: 1 });
    const more = { ...plain.events };
    // An activity is three events, and one workflow task processes its result.
    for (const type of ['Scheduled', 'Started', 'Completed']) {
      const key = `activityTask${type}EventAttributes`;
      more[key] = (more[key] ?? 0) + 1;
    }
    const key = 'workflowTaskCompletedEventAttributes';
    more[key] = (more[key] ?? 0) + 1;
    for (const { number, events, activities } of all) {
      expect(activities).toEqual({ callModel: isRepaired(number) ? 2 : 1 });
      expect({ number, ...events }).toEqual({
        number,
        ...(isRepaired(number) ? more : plain.events),
      });
    }
  });
});
