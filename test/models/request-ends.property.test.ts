import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createModelRequest } from '../../src/activities/model/model-request.js';
import { acceptMessage } from '../../src/core/run/ask.js';
import type { GraphNode } from '../../src/core/definition/node-kinds.js';
import type { JsonObject } from '../../src/core/text/json.js';
import { runLoop, type Run } from '../../src/core/interpret/loop.js';
import { reduce } from '../../src/core/run/reduce.js';
import { initialState } from '../../src/core/state/state.js';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { toPromptMessage } from '../../src/core/transcript/transcript.js';
import { createMessagesRequest } from '../../src/models/anthropic/request.js';
import { getCapabilities } from '../../src/models/known-models.js';
import type { ModelRequest } from '../../src/models/model.js';
import { createChatRequest } from '../../src/models/openai/chat/request.js';
import { createResponsesRequest } from '../../src/models/openai/responses/request.js';
import { NO_DATA } from '../../src/models/wire/attachment-parts.js';
import { NO_REPLAY } from '../../src/models/wire/opaque-fields.js';
import { createToolRegistry } from '../../src/tools/tool.js';
import { memoryBlobs } from '../support/activity.js';
import { node, RUN } from '../support/graph-agent.js';
import { callReply, config, textReply } from '../support/scripts.js';
import { effectsOf } from '../support/turn.js';

const DEFINITION = config().definition;

/** Returns the request of a model call with this prompt. */
function requestOf(messages: readonly PromptMessage[], definition = DEFINITION): ModelRequest {
  const pinned = { definition, tools: createToolRegistry([]), agent: undefined, current: false };
  return createModelRequest(
    { blobs: memoryBlobs() },
    { run: 'run', pinned, messages },
    { upTo: messages.length, head: '', definition: '', turn: 1, step: 1 },
  );
}

/** The messages of a request in each wire format, as their JSON without marks for the cache. */
const FORMATS: Readonly<Record<string, (request: ModelRequest) => readonly JsonObject[]>> = {
  chat: (request) => plain(createChatRequest(request, { stream: false }).messages.slice(1)),
  alternating: (request) => {
    const capabilities = { ...getCapabilities(request.model), roleOrder: 'alternating' } as const;
    return plain(createChatRequest(request, { stream: false, capabilities }).messages.slice(1));
  },
  responses: (request) =>
    plain(
      createResponsesRequest(request, {
        stream: false,
        capabilities: getCapabilities(request.model),
        data: NO_DATA,
        replay: NO_REPLAY,
      }).input,
    ),
  anthropic: (request) => plain(createMessagesRequest(request, { stream: false }).messages),
};

function plain(messages: readonly object[]): readonly JsonObject[] {
  const text = JSON.stringify(messages, (key, value: unknown) =>
    key === 'cache_control' ? undefined : value,
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was written from objects
  return JSON.parse(text) as readonly JsonObject[];
}

/** Returns the role of a message; items of the Responses API name it in other ways. */
function roleOf({ role, type }: JsonObject): unknown {
  if (type === 'function_call_output') return 'tool';
  return type === 'function_call' ? 'assistant' : role;
}

function expectAccepted(request: ModelRequest): void {
  for (const [format, write] of Object.entries(FORMATS)) {
    const roles = write(request).map(roleOf);
    const last = roles.at(-1);
    const alternates = format === 'alternating' || format === 'anthropic';
    expect({
      format,
      first: roles[0],
      endsAsked: last === 'user' || last === 'tool',
      twice: roles.filter(
        (role, index) => alternates && role !== 'tool' && role === roles[index - 1],
      ),
    }).toEqual({ format, first: 'user', endsAsked: true, twice: [] });
  }
}

interface Shape {
  readonly kind: 'decide' | 'typed' | 'answer' | 'run' | 'agent';
  readonly to: readonly [number, number];
}

const words = fc.constantFrom('', ' ', 'yes', 'a draft', 'Continue.');

/** What a prompt gains by a reply: a text, or calls with all their results. */
const replied: fc.Arbitrary<readonly PromptMessage[]> = fc.oneof(
  words.map((text) => [{ role: 'assistant', text }] as const),
  fc.tuple(words, fc.nat(1_000_000)).map(([text, id]) => [
    {
      role: 'assistant',
      text,
      calls: [{ id: `call_${id}`, name: 'look', arguments: '{}', digest: '' }],
    } as const,
    { role: 'tool', text, callId: `call_${id}` } as const,
  ]),
);

const part = fc.oneof(
  replied,
  words.map((text): readonly PromptMessage[] => [{ role: 'user', text }]),
);

test('a request with any transcript begins and ends as every provider accepts it', () => {
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
      expectAccepted(requestOf(parts.flat()));
    }),
    { seed: 20261125, numRuns: 500 },
  );
});

test('a request begins with the messages of the request before its reply', () => {
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), replied, part, (parts, reply, more) => {
      const before = parts.flat();
      const shared = requestOf(before).messages;
      const after = requestOf([...before, ...reply, ...more]).messages;
      expect(after.slice(0, shared.length)).toEqual(shared);
    }),
    { seed: 20261125, numRuns: 500 },
  );
});

const NODES = ['a', 'b', 'c', 'd'];

const shape: fc.Arbitrary<Shape> = fc.record({
  kind: fc.constantFrom('decide', 'decide', 'typed', 'answer', 'run', 'agent'),
  to: fc.tuple(fc.nat(NODES.length), fc.nat(NODES.length)),
});

function nodesFrom(shapes: readonly Shape[]): readonly GraphNode[] {
  const target = (index: number): string => NODES.slice(0, shapes.length)[index] ?? 'end';
  return shapes.map(({ kind, to: [one, two] }, index): GraphNode => {
    const next = { done: target(one), capped: 'end' };
    switch (kind) {
      case 'decide':
        return node(
          target(index),
          { kind: 'decide', save: 'answer', maxVisits: 3 },
          { text: target(one), look: target(two), capped: 'end' },
        );
      case 'typed': {
        const output = { name: 'kind', schema: {}, attempts: 2 };
        const typed = { kind: 'decide', save: 'kind', output, maxVisits: 3 } as const;
        return node(target(index), typed, { ...next, failed: target(two) });
      }
      case 'answer':
        return node(target(index), { kind: 'answer', save: 'text', maxVisits: 3 }, next);
      case 'run':
        return node(target(index), { ...RUN, maxVisits: 3 }, next);
      case 'agent': {
        const called = { kind: 'agent', agent: 'desk', message: 'x', maxVisits: 3 } as const;
        return node(target(index), called, { ...next, stopped: 'end', failed: target(two) });
      }
    }
  });
}

test('every request of any graph begins and ends as every provider accepts it', async () => {
  const turns = fc.array(fc.boolean(), { minLength: 1, maxLength: 3 });
  const replies = fc.infiniteStream(fc.constantFrom('text', 'call', 'blank', 'broken'));
  let requests = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(shape, { minLength: 1, maxLength: NODES.length }),
      turns,
      replies,
      async (shapes, withMessage, script) => {
        const graph = {
          start: 'a',
          nodes: nodesFrom(shapes),
          fields: ['answer', 'kind', 'text'],
          initial: {},
          perTurn: [],
          answerFrom: 'answer',
          answerJoins: true,
        } as const;
        const run: Run = { state: initialState(config({ graph }), { open: true }) };
        const effects = effectsOf(run, {
          callModel: async ({ transcript, config: { definition } }) => {
            requests += 1;
            expectAccepted(requestOf(transcript.messages.map(toPromptMessage), definition));
            const kind = script.next().value;
            if (kind === 'call') return { type: 'replied', reply: callReply(['look']) };
            const text = kind === 'blank' ? '' : `text ${requests}`;
            const parsed =
              kind === 'broken'
                ? ({ ok: false, problem: 'no' } as const)
                : ({ ok: true, output: { n: 1 } } as const);
            const isTyped =
              shapes[NODES.indexOf(run.state.graph?.at?.node ?? '')]?.kind === 'typed';
            return { type: 'replied', reply: { ...textReply(text), ...(isTyped && { parsed }) } };
          },
          runCalls: async (_, calls, finished) => {
            for (const { id } of calls) {
              finished(id, {
                ok: true,
                text: 'x',
                output: { status: 'completed', answer: 'draft' },
              });
            }
            return null;
          },
          awaitChange: async () => 'cancel',
        });
        for (const [index, hasText] of withMessage.entries()) {
          const ask = hasText ? { message: `m${index}` } : { message: '', input: {} };
          const { event } = acceptMessage(run.state, ask, `id${index}`);
          if (event !== null) run.state = reduce(run.state, event);
        }
        await runLoop(run, effects);
      },
    ),
    { seed: 20261125, numRuns: 300 },
  );
  expect(requests).toBeGreaterThan(500);
});
