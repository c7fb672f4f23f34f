import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import type { ActivityDependencies } from '../../src/activities/activity-context.js';
import { checkDecision } from '../../src/activities/requests/check-decision.js';
import type { CheckDecisionInput, CheckDecisionResult } from '../../src/core/run/contract.js';
import { isCheckedDecision } from '../../src/core/guards/recorded.js';
import type { Json, JsonObject } from '../../src/core/text/json.js';
import {
  type Decision,
  OFFERED,
  type Request,
  type RequestKind,
} from '../../src/core/transcript/request.js';
import type { ToolCall } from '../../src/core/transcript/messages.js';
import { askPerson } from '../../src/tools/built-in/workflow-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { toToolDefinition, type Tool } from '../../src/tools/tool.js';
import { inActivity, memoryBlobs, pinnedAgent, toolCall, workerDeps } from '../support/activity.js';

const refund = (rest: object = {}): Tool =>
  defineTool({
    name: 'refund',
    description: 'Refunds.',
    input: z.object({ euros: z.number().positive(), note: z.string().optional() }),
    effect: 'keyed',
    describe: ({ euros }) => `refund ${euros} €`,
    execute: () => 'done',
    ...rest,
  });

function request(kind: RequestKind): Request {
  return {
    id: 'r1',
    kind,
    digest: 'd',
    shown: 'refund',
    why: 'a rule',
    requester: null,
    raisedAt: 1,
    expiresAt: null,
    onExpiry: 'deny',
    decisions: OFFERED[kind],
    deciders: [],
    fix: 'perdure approve run-1',
  };
}

interface Decided {
  readonly tools?: readonly Tool[];
  readonly pinned?: readonly Tool[];
  readonly call?: Partial<ToolCall>;
  readonly name?: string;
  readonly kind?: RequestKind;
  readonly requests?: Partial<ActivityDependencies['requests']>;
  readonly input?: Partial<CheckDecisionInput>;
}

async function decide(
  decision: Partial<Decision>,
  {
    tools = [refund()],
    pinned,
    requests,
    name = 'refund',
    kind = 'approval',
    ...rest
  }: Decided = {},
): Promise<CheckDecisionResult> {
  const agent = pinnedAgent(tools, {
    ...(pinned && { pinned: pinned.map((tool) => toToolDefinition(tool)) }),
  });
  const input: CheckDecisionInput = {
    definition: 'h',
    turn: 1,
    step: 1,
    work: 'call_1_1_0',
    request: request(kind),
    decision: { request: 'r1', digest: 'd', as: 'approve', ...decision },
    call: toolCall(name, { euros: 5 }, rest.call),
    ...rest.input,
  };
  const result = await inActivity(() => checkDecision(workerDeps(agent, requests), input));
  expect(isCheckedDecision(result)).toBe(true);
  return result;
}

const edit = (value: unknown): Partial<Decision> => ({
  as: 'edit',
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a client could send
  arguments: value as JsonObject,
});
const answer = (result: Json): Partial<Decision> => ({ as: 'answer', result });

describe('mayDecide', () => {
  test('receives the request, the decider, and the context', async () => {
    const seen: unknown[] = [];
    const requests = { mayDecide: (...given: unknown[]) => seen.push(given) > 0 };
    const input = { context: { team: 'blue' } };
    expect(await decide({ by: 'ada', note: 'n' }, { requests, input })).toEqual({ ok: true });
    const decision = { request: 'r1', digest: 'd', as: 'approve', by: 'ada', note: 'n' };
    const run = { id: 'run-1', runId: 'segment-1', turn: 1 };
    expect(seen).toEqual([
      [request('approval'), { by: 'ada', decision, run, context: { team: 'blue' } }],
    ]);
  });

  test.each<[string, () => unknown, string]>([
    ['refuses', () => false, 'by `mayDecide`, got "eve"; another person must decide'],
    [
      'throws',
      () => {
        throw new Error('no directory');
      },
      'it failed: no directory',
    ],
    ['returns 1', () => 1, 'it returned 1 instead of true or false'],
    ['returns nothing', () => undefined, 'it returned undefined'],
    ['hangs', () => new Promise(() => undefined), 'it failed: it did not finish within 5 s'],
  ])('that %s denies everyone', async (_how, mayDecide, message) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a function that lies about its type
    const requests = { mayDecide: mayDecide as () => boolean };
    for (const decision of [{}, edit({ euros: 1 })]) {
      const result = await decide({ ...decision, by: 'eve' }, { requests });
      expect(result).toMatchObject({ ok: false, message: expect.stringContaining(message) });
    }
  });

  test('that exists only on other workers denies everyone', async () => {
    const input = { mayDecide: true } as const;
    const result = await decide({}, { input });
    expect(result).toMatchObject({
      ok: false,
      message: expect.stringContaining('this worker has no `mayDecide`'),
    });
    expect(await decide({})).toEqual({ ok: true });
  });
});

describe('an edit', () => {
  test('becomes a call that is checked, described, and evaluated', async () => {
    const requests = { rules: [{ tool: 'refund', then: 'ask', deciders: ['ada'] } as const] };
    const call = { via: 'catalog', safety: [{ id: 's' }] } as const;
    const { id: _, ...edited } = toolCall('refund', { note: 'x', euros: 7 }, call);
    expect(await decide(edit({ note: 'x', euros: 7 }), { requests, call })).toEqual({
      ok: true,
      call: {
        ...edited,
        summary: 'refund 7 €',
        verdict: { then: 'ask', why: 'rule: ask refund', deciders: [['ada']] },
      },
    });
  });

  test('that answers no request has no verdict', async () => {
    expect(await decide(edit({ euros: 7 }))).not.toHaveProperty('call.verdict');
  });

  test.each<[unknown, string]>([
    [undefined, 'arguments: expected all new arguments as an object, got undefined'],
    ['{"euros": 1}', 'arguments: expected all new arguments as an object'],
    [[1], 'arguments: expected all new arguments as an object, got [1]'],
    [{ euros: -1 }, 'arguments: The arguments of refund are not valid'],
    [{}, 'euros: missing'],
    [{ euros: 1, too: 'many' }, 'unknown argument "too"'],
    [JSON.parse('{"euros": 1, "__proto__": {"x": 1}}'), '__proto__'],
    [JSON.parse(`{"euros": ${'{"a":'.repeat(80)}1${'}'.repeat(80)}}`), 'arguments: '],
  ])('to %j is refused', async (value, message) => {
    const result = await decide(edit(value));
    expect(result).toMatchObject({ ok: false, message: expect.stringContaining(message) });
  });

  test('into a call that a rule denies is refused, at each level', async () => {
    const rules = [
      { tool: 'refund', where: { op: 'over', path: 'euros', value: 50 }, then: 'deny' } as const,
    ];
    const denied = {
      ok: false,
      message:
        'arguments: expected arguments that the rules allow (rule: deny refund where euros over 50); change them',
    };
    expect(await decide(edit({ euros: 51 }), { requests: { rules } })).toEqual(denied);
    expect(await decide(edit({ euros: 51 }), { input: { rules } })).toEqual(denied);
  });

  test('is evaluated by the predicate of the tool', async () => {
    const tools = [refund({ approval: ({ euros }: { euros: number }) => euros > 50 })];
    expect(await decide(edit({ euros: 50 }), { tools })).not.toHaveProperty('call.verdict');
    expect(await decide(edit({ euros: 51 }), { tools })).toHaveProperty('call.verdict.then', 'ask');
  });

  test('of a changed tool has to fit both versions of it', async () => {
    const pinned = [refund()];
    const tools = [refund({ input: z.object({ euros: z.number().max(10) }) })];
    expect(await decide(edit({ euros: 10 }), { tools, pinned })).toMatchObject({ ok: true });
    expect(await decide(edit({ euros: 11 }), { tools, pinned })).toMatchObject({
      ok: false,
      message: expect.stringContaining('(the tool has changed since the run began)'),
    });
    expect(await decide(edit({ euros: -1 }), { tools, pinned })).toMatchObject({ ok: false });
  });

  test('of 2 MB goes to the blob store', async () => {
    const result = await decide(edit({ euros: 1, note: 'x'.repeat(2_000_000) }));
    expect(result).toHaveProperty('call.blob.bytes', 2_000_021);
    expect(JSON.stringify(result).length).toBeLessThan(1_000);
  });

  test('of a limit is refused', async () => {
    const { call: _, ...input } = { call: undefined, work: 'limit' };
    const result = await inActivity(() =>
      checkDecision(workerDeps(pinnedAgent([])), {
        definition: 'h',
        turn: 1,
        step: 1,
        request: request('limit'),
        decision: { request: 'r1', digest: 'd', as: 'edit', arguments: {} },
        ...input,
      }),
    );
    expect(result).toMatchObject({ ok: false, message: expect.stringContaining('for a limit') });
  });
});

describe('an answer', () => {
  const color = (rest: object = {}): Tool =>
    defineTool({
      name: 'pick',
      description: 'Picks.',
      input: z.object({}),
      effect: 'read',
      output: z.object({ color: z.string().trim() }),
      ...rest,
    });
  const picked = { kind: 'client_tool', name: 'pick' } as const;

  test('is the result of the call, as parsed by the output schema', async () => {
    expect(await decide(answer({ color: ' red ' }), { tools: [color()], ...picked })).toEqual({
      ok: true,
      result: { text: '{"color":"red"}' },
    });
  });

  test('of a tool with `ends` is typed', async () => {
    const tools = [color({ ends: true })];
    expect(await decide(answer({ color: 'red' }), { tools, ...picked })).toEqual({
      ok: true,
      result: { text: '{"color":"red"}', output: { color: 'red' } },
    });
  });

  test('that does not match the schema is refused, even on a worker without the tool', async () => {
    for (const tools of [[color()], []]) {
      const given = { tools, pinned: [color()], ...picked };
      const result = await decide(answer({ color: 7 }), given);
      expect(result).toMatchObject({
        ok: false,
        message: expect.stringContaining('result: it does not fit the tool:\n- color: '),
      });
      expect(await decide(answer({ color: 'red' }), given)).toMatchObject({ ok: true });
    }
  });

  test('is refused if it is missing, or if the check fails', async () => {
    expect(await decide({ as: 'answer' })).toMatchObject({
      ok: false,
      message: 'result: expected the result of the call, got none; give it',
    });
    const broken = z.string().refine(() => {
      throw new Error('broken');
    });
    const result = await decide(answer('x'), { tools: [color({ output: broken })], ...picked });
    expect(result).toMatchObject({
      ok: false,
      message: expect.stringContaining('it cannot be checked: broken'),
    });
  });

  test('to a question is a text', async () => {
    const question = { tools: [askPerson()], kind: 'question', name: 'ask_person' } as const;
    expect(await decide(answer('blue'), question)).toEqual({ ok: true, result: { text: 'blue' } });
    for (const value of [7, '', ' ', null, { answer: 'blue' }]) {
      expect(await decide(answer(value), question)).toMatchObject({
        ok: false,
        message: expect.stringContaining('result: expected a text that answers the question'),
      });
    }
  });

  test('for an ordinary tool is any value, and a large one is stored', async () => {
    expect(await decide(answer({ value: 1 }))).toEqual({
      ok: true,
      result: { text: '{"value":1}' },
    });
    expect(await decide(answer('x'.repeat(500_000)))).toHaveProperty('result.blob.bytes', 500_000);
  });

  test('is refused for a tool that the agent does not have', async () => {
    expect(await decide(answer(1), { name: 'other' })).toMatchObject({ ok: false });
  });
});

test('a store that is down refuses the edit, which the person may retry', async () => {
  const deps = workerDeps(pinnedAgent([refund()]));
  const down = { ...memoryBlobs(), put: () => Promise.reject(new Error('disk full')) };
  const result = await inActivity(() =>
    checkDecision(
      { ...deps, blobs: down },
      {
        definition: 'h',
        turn: 1,
        step: 1,
        work: 'call_1_1_0',
        request: request('approval'),
        decision: {
          request: 'r1',
          digest: 'd',
          as: 'edit',
          arguments: { euros: 1, note: 'x'.repeat(200_000) },
        },
        call: toolCall('refund', { euros: 5 }),
      },
    ),
  );
  expect(result).toMatchObject({ ok: false, message: expect.stringContaining('disk full') });
});

test("a person's answer to a server is refused while its form cannot be checked", async () => {
  const form = { type: 'object', properties: { sure: { type: 'boolean' } } } as const;
  const asked = { ...request('question'), server: 'shop', form };
  const given = async () => await decide(answer({ sure: 'no' }), { input: { request: asked } });
  const clock = vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValueOnce(16_000);
  onTestFinished(() => clock.mockRestore());
  expect(await given()).toEqual({
    ok: false,
    message:
      'result: it could not be checked now, because checks by other schemas took longer than 15 s; try again',
  });
  expect(await given()).toMatchObject({
    message: expect.stringContaining('sure: expected true or false, got "no"'),
  });
});
