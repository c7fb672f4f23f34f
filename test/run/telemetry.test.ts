import { randomUUID } from 'node:crypto';
import { context, propagation, SpanStatusCode, trace } from '@opentelemetry/api';
import { Client, type WorkflowClientInterceptor } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  CompositePropagator,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type SpanProcessor,
  BasicTracerProvider,
} from '@opentelemetry/sdk-trace-base';
import { OpenTelemetryActivityInboundInterceptor } from '@temporalio/interceptors-opentelemetry';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { TRACE_HEADER } from '../../src/core/transcript/call-result.js';
import { createClient } from '../../src/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createDesk, type Desk } from '../support/requests.js';

const exporter = new InMemorySpanExporter();
/** Whether the processor of the user's spans throws. */
let rudeSpans = false;
const throwIfRude = (): void => {
  if (rudeSpans) throw new Error('the processor is broken');
};
const rude: SpanProcessor = {
  onStart: throwIfRude,
  onEnd: throwIfRude,
  forceFlush: async () => undefined,
  shutdown: async () => undefined,
};
const provider = new BasicTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(exporter), rude],
});

const look = defineTool({
  name: 'look',
  description: 'looks',
  effect: 'read',
  input: z.object({ fails: z.boolean() }),
  execute: async ({ fails }) => {
    if (fails) throw new Error('nothing is there');
    return 'a canary-free sight';
  },
});
const scout = defineAgent({
  name: 'scout',
  description: 'scouts',
  instructions: 'x',
  model: 'script',
  tools: [look],
});
const head = defineAgent({ name: 'head', instructions: 'x', model: 'script', agents: [scout] });

let desk: Desk;
let client: PerdureClient;
beforeAll(async () => {
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(
    new CompositePropagator({
      propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
    }),
  );
  desk = await createDesk();
  await desk.work([scout, head]);
  client = await createClient({
    address: inject('temporalAddress'),
    taskQueue: desk.rig.taskQueue,
    home: desk.rig.home,
  });
});
beforeEach(() => exporter.reset());
afterAll(async () => {
  trace.disable();
  context.disable();
  propagation.disable();
  await client.disconnect();
  await desk.close();
});

const spans = () =>
  exporter.getFinishedSpans().map((span) => ({
    name: span.name,
    attributes: span.attributes,
    status: span.status,
    parent: span.parentSpanContext?.spanId,
    id: span.spanContext().spanId,
    began: span.startTime[0] * 1e9 + span.startTime[1],
    traceId: span.spanContext().traceId,
  }));
const named = (name: string) => spans().filter((span) => span.name === name);

interface Tree {
  readonly [name: string]: readonly Tree[];
}

/** Returns each span with those below it, in the order in which they began. */
function tree(all: ReturnType<typeof spans>): Tree {
  const known = new Set(all.map(({ id }) => id));
  const below = (parent: string | undefined): readonly Tree[] =>
    all
      .filter((one) =>
        parent === undefined ? !known.has(one.parent ?? '') : one.parent === parent,
      )
      .toSorted((one, other) => one.began - other.began)
      .map(({ name, id }) => ({ [name]: below(id) }));
  return Object.assign({}, ...below(undefined)) as Tree;
}

const calledAgent: Tree = {
  'invoke_agent scout': [{ 'chat script': [{ 'execute_tool look': [] }] }, { 'chat script': [] }],
};

describe('the spans of a run', () => {
  test('are in the trace of the client that started it, including its calls and called agents', async () => {
    desk.script([
      { scout: { message: 'look around' } },
      { look: { fails: false } },
      'seen',
      'done',
    ]);
    const run = await client.start('head', { message: 'go' });
    expect(await client.result(run)).toMatchObject({ answer: 'done' });
    const [started] = named('invoke_agent head');
    expect(new Set(spans().map(({ traceId }) => traceId))).toEqual(new Set([started?.traceId]));
    expect(
      spans()
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual([
      'chat script',
      'chat script',
      'chat script',
      'chat script',
      'execute_tool look',
      'invoke_agent head',
      'invoke_agent scout',
    ]);
    // T-30: agent → decision → called agent → its decision → tool. The second reply of each is next
    // to the first.
    expect(tree(spans())).toEqual({
      'invoke_agent head': [{ 'chat script': [calledAgent] }, { 'chat script': [] }],
    });
    expect(named('chat script')[0]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'custom',
      'gen_ai.request.model': 'script',
      'gen_ai.agent.name': 'head',
      'gen_ai.conversation.id': run.id,
      'gen_ai.response.finish_reasons': ['calls'],
      temporalWorkflowId: run.id,
      'perdure.turn': 1,
      'perdure.step': 1,
    });
    expect(named('execute_tool look')[0]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'look',
      'gen_ai.agent.name': 'scout',
    });
    expect(JSON.stringify(spans())).not.toContain('sight');
  });

  test('of each message are in the trace of its sender', async () => {
    desk.script(['one', 'two']);
    const run = await client.start('scout', { message: 'go', open: true });
    await client.result(run, { turn: 1 });
    exporter.reset();
    await client.send(run, 'and now?');
    await client.result(run, { turn: 2 });
    await client.close(run);
    const [asked] = named('invoke_agent');
    expect(named('chat script')).toMatchObject([{ parent: asked?.id, traceId: asked?.traceId }]);
    await desk.end(desk.rig.client.workflow.getHandle(run.id));
  });

  test('of a message that waited for a worker are in the trace of its sender', async () => {
    const other = await createDesk();
    const sender = await createClient({
      address: inject('temporalAddress'),
      taskQueue: other.rig.taskQueue,
      home: other.rig.home,
    });
    const id = `waited-${randomUUID()}`;
    const start = { agent: 'scout' };
    expect(await sender.send(id, 'first', { start })).toMatchObject({ delivered: false });
    exporter.reset();
    expect(await sender.send(id, 'and now?')).toMatchObject({ delivered: false });
    other.script(['one', 'two']);
    await other.work([scout]);
    await sender.result(id, { turn: 1 });
    await sender.close(id);
    await other.end(other.rig.client.workflow.getHandle(id));
    const { events } = await other.rig.client.workflow.getHandle(id).fetchHistory();
    const signals = (events ?? []).flatMap(
      ({ workflowExecutionSignaledEventAttributes: signal }) => signal ?? [],
    );
    expect(signals).toHaveLength(2);
    for (const { header } of signals) expect(header?.fields).toHaveProperty([TRACE_HEADER]);
    const [chat] = named('chat script');
    const sent = spans().filter(({ name }) => name.startsWith('invoke_agent'));
    expect(sent.map(({ id: span }) => span)).toContain(chat?.parent);
    await sender.disconnect();
    await other.close();
  });

  test('are in one trace with those of Temporal’s own interceptors, and below them', async () => {
    const other = await createDesk();
    const sender = await createClient({
      address: inject('temporalAddress'),
      taskQueue: other.rig.taskQueue,
      home: other.rig.home,
    });
    await other.work([scout], {
      interceptors: {
        activity: [(given) => ({ inbound: new OpenTelemetryActivityInboundInterceptor(given) })],
      },
    });
    other.script(['one']);
    await sender.result(await sender.start('scout', { message: 'go' }));
    const [started] = named('invoke_agent scout');
    const [activity] = named('RunActivity:callModel');
    const [chat] = named('chat script');
    expect(activity).toMatchObject({ parent: started?.id, traceId: started?.traceId });
    expect(chat).toMatchObject({ parent: activity?.id, traceId: started?.traceId });
    await sender.disconnect();
    await other.close();
  });

  test('report what has failed', async () => {
    desk.script([{ look: { fails: true } }, 'done']);
    await client.result(await client.start('scout', { message: 'go' }));
    const failed = named('execute_tool look');
    expect(failed.map(({ attributes }) => attributes['perdure.attempt'])).toEqual([1, 2, 3]);
    expect(failed.map(({ status }) => status)).toEqual(
      [1, 2, 3].map(() => ({ code: SpanStatusCode.ERROR })),
    );
    // The last attempt returns the error, as a result for the model.
    expect(failed[2]?.attributes).toMatchObject({ 'error.type': 'error' });
    // The tool's message may be confidential.
    expect(JSON.stringify(spans())).not.toContain('nothing is there');
  });

  test('do not repeat paid work if a span processor throws', async () => {
    desk.script([{ look: { fails: false } }, 'done', 'again']);
    rudeSpans = true;
    try {
      const outcome = await client.result(await client.start('scout', { message: 'go' }));
      expect(outcome).toMatchObject({ status: 'completed', answer: 'done', steps: 2 });
    } finally {
      rudeSpans = false;
    }
  });

  test.each([
    ['text', defaultPayloadConverter.toPayload('rubbish')],
    ['another trace', defaultPayloadConverter.toPayload({ traceparent: 'x'.repeat(9_000) })],
    ['a number', defaultPayloadConverter.toPayload({ baggage: 5 })],
    ['bytes', { metadata: { encoding: Buffer.from('none') }, data: Buffer.from([0, 255]) }],
  ])('begin a trace if the header of a run is malformed: %s', async (_, payload) => {
    desk.script(['fine']);
    const { connection, options } = desk.rig.client;
    const rudeClient: WorkflowClientInterceptor = {
      startWithDetails: async (input, next) =>
        await next({ ...input, headers: { ...input.headers, [TRACE_HEADER]: payload } }),
    };
    const interceptors = { workflow: [rudeClient] };
    const other = new Client({ connection, namespace: options.namespace, interceptors });
    const handle = await other.workflow.start('agent', {
      taskQueue: desk.rig.taskQueue,
      workflowId: `rude-${randomUUID()}`,
      args: [{ agent: 'scout', message: 'go' }],
    });
    expect(await handle.result()).toMatchObject({ answer: 'fine' });
    const { events = [] } = await handle.fetchHistory();
    const passed = events?.map((event) => {
      const { header } = event.activityTaskScheduledEventAttributes ?? {};
      return header?.fields?.[TRACE_HEADER]?.data?.length ?? 0;
    });
    expect(Math.max(...(passed ?? []))).toBeLessThan(2_049);
    expect(named('chat script')).toMatchObject([{ parent: undefined }]);
  });
});
