import { randomUUID } from 'node:crypto';
import { openingMessage, type Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import type { Row } from '../row.js';
import type { StubRequest } from '../../src/testing/wire-input.js';
import { segmentsOf } from './step-marks.js';

/**
 * Checks that each request begins with the bytes of the previous one, across segment changes and on
 * a second worker that starts with an empty memory. The prompt is never summarized.
 */
export async function prefixRow(bench: Bench): Promise<Row> {
  const steps = bench.quick ? 240 : 440;
  const movedAt = steps - 80;
  const script: Script = { name: `prefix-${randomUUID()}`, steps, tools: ['work'], bytes: 2_000 };
  const env = { SEGMENTS: 'default', QUEUE: script.name };
  const first = await bench.worker('perdure', env);
  const watch = watchPrompts(bench, script.name, movedAt);
  const handle = await bench.client.workflow.start('agent', {
    taskQueue: script.name,
    workflowId: script.name,
    args: [{ agent: 'http', message: openingMessage(script) }],
  });
  await watch.arrived;
  await first.kill();
  const second = await bench.worker('perdure', env);
  await handle.result();
  await second.end();
  const segments = await segmentsOf(bench.client, script.name);
  return {
    name: 'flat/prefix',
    what: 'requests that do not begin with the bytes of the one before',
    value: watch.violations(),
    unit: 'count',
    bar: { atMost: 0 },
    samples: [],
    detail: `of ${watch.requests()} in ${segments.length} segments, worker killed at step ${movedAt}`,
  };
}

interface Watch {
  /** At this step, the run moves to another worker. */
  readonly arrived: Promise<void>;
  violations(): number;
  requests(): number;
}

function watchPrompts(bench: Bench, name: string, movedAt: number): Watch {
  let before: Parts | null = null;
  let violations = 0;
  let requests = 0;
  let arrive = (): void => undefined;
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  bench.stub.answer((request) => {
    if (!request.text.includes(name)) return undefined;
    const parts = partsOf(request);
    requests += 1;
    if (parts === null || (before !== null && !continues(before, parts))) violations += 1;
    before = parts;
    if (request.assistantMessages === movedAt) arrive();
    return undefined;
  });
  return { arrived, violations: () => violations, requests: () => requests };
}

interface Parts {
  /** The messages as sent over the wire, without the bracket that closes their list. */
  readonly messages: string;
  /** Everything else: model, tools, settings. */
  readonly rest: string;
}

/** Null if the body's own bytes cannot be identified. */
function partsOf({ text, body }: StubRequest): Parts | null {
  const messages = JSON.stringify(body['messages']);
  const at = text.indexOf(messages);
  if (at < 0) return null;
  const rest = text.slice(0, at) + text.slice(at + messages.length);
  return { messages: messages.slice(0, -1), rest };
}

/** A step that is requested again has the same messages; the next one has more. */
function continues(before: Parts, next: Parts): boolean {
  return next.rest === before.rest && next.messages.startsWith(before.messages);
}
