import stringWidth from 'string-width';
import { describe, expect, test } from 'vitest';
import { inboxLines } from '../../src/cli/requests/show-request.js';
import { decidingCommands } from '../../src/core/requests/commands.js';
import { requestLines } from '../../src/cli/requests/request-lines.js';
import { wrapped } from '../../src/cli/format/format.js';
import { shellLine } from '../../src/core/text/text.js';
import { askRequest } from '../../src/core/requests/server-ask.js';
import { toRequest } from '../../src/core/requests/open-requests.js';
import { requestMemo } from '../../src/core/requests/request-memo.js';
import { presentRequest } from '../../src/core/requests/presentation.js';
import { shownToModel, toPending } from '../../src/http/views.js';
import { visible } from '../../src/core/state/summaries.js';
import {
  OFFERED,
  type RaisedRequest,
  type Request,
  type ServerAsk,
} from '../../src/core/transcript/request.js';
import { releaseReadyCalls } from '../../src/core/plan/plan-batch.js';
import { readChoice, readPlain, wordsOf } from '../../src/cli/requests/prompt.js';
import { type Plan, planValue } from '../../src/core/plan/plan.js';
import { showPlan } from '../../src/core/plan/confirm-plan.js';
import type { RunState } from '../../src/core/state/state.js';
import type { RequestedCall } from '../../src/core/transcript/messages.js';
import { ID, runWithCall } from '../support/pending-call.js';
import { begun, config, toolDefinition } from '../support/scripts.js';

const RUN = 'desk-1';
const NOW = 1_300_000;

/** Renames the run's only call: nodes of graphs and questions are no tools of this agent. */
function withName(state: RunState, name: string): RunState {
  const { phase } = state.turn;
  if (phase.type !== 'acting') throw new Error(phase.type);
  const calls = phase.batch.calls.map((call) => ({ ...call, name }));
  const batch = { ...phase.batch, calls };
  return { ...state, turn: { ...state.turn, phase: { ...phase, batch } } };
}

/** Returns the request of a run about a call, as the engine makes it. */
function asked(
  raised: Pick<RaisedRequest, 'kind' | 'why'> & Partial<RaisedRequest>,
  { name = 'put', ...call }: Partial<RequestedCall> = {},
): Request {
  const state = withName(runWithCall('put', call), name);
  const request = { id: 'r1', raisedAt: 1_000_000, ...raised };
  const work = { name: ID, phase: 'waiting', key: 'key-1', request };
  return toRequest({ ...state, firstRunId: 'f' }, work as never, RUN);
}

const actions = [
  {
    id: 'a1',
    tool: 'create_event',
    arguments: { title: 'Lunch', notes: 'n'.repeat(900) },
    shown: 'create the event Lunch',
  },
  {
    id: 'a2',
    tool: 'delete_event',
    arguments: { event: 'e9' },
    shown: 'delete event e9',
    asks: { then: 'ask' as const, why: 'the tool requires approval of every call' },
  },
];
const plan = { actions, done: [], asks: true };

/** Returns the request about a plan. */
function planned(shown: Plan): Request {
  return asked(
    { kind: 'plan', why: 'the plan has actions that need approval' },
    {
      name: 'node:confirm',
      arguments: JSON.stringify({
        question: showPlan(shown),
        options: ['yes', 'no'],
        actions: planValue(shown)['actions'],
      }),
    },
  );
}
const refund = {
  arguments: '{"note":"as agreed\\u202e","order":17,"euros":"60"}',
  parsed: { arguments: '{"euros":60,"note":"as agreed\\u202e","order":17}', digest: 'p' },
  summary: 'refund 60 € to order 17',
};

const FORM = {
  type: 'object',
  properties: {
    seats: { type: 'integer', title: 'How many seats', minimum: 1, default: 1 },
    confirm: { type: 'boolean', title: 'Really book' },
    name: { type: 'string', title: 'Who travels' },
  },
  required: ['seats', 'confirm', 'name'],
};

const REQUESTS: Readonly<Record<string, Request>> = {
  approval: asked({ kind: 'approval', why: 'rule: ask put where euros over 50' }, refund),
  question: asked(
    { kind: 'question', why: 'the model asks' },
    {
      name: 'ask_person',
      arguments: JSON.stringify({
        question: 'Which color?\nmay decide: anyone',
        options: ['the blue one', 'the red one'],
      }),
    },
  ),
  confirm: asked(
    { kind: 'question', why: 'the graph asks' },
    {
      name: 'node:sure',
      arguments: JSON.stringify({ question: 'Send 3 mails to ann?', options: ['yes', 'no'] }),
    },
  ),
  plan: planned(plan),
  limit: asked(
    { kind: 'limit', why: 'a limit is reached', limit: { name: 'steps', used: 99, limit: 99 } },
    {},
  ),
  outcome_unknown: asked({ kind: 'outcome_unknown', why: 'the worker was lost' }, refund),
  safety_check: asked(
    { kind: 'safety_check', why: 'the provider asks for a review' },
    { ...refund, safety: [{ id: 's1', code: 'malicious', message: 'The page may deceive.' }] },
  ),
  tool_changed: asked(
    {
      kind: 'tool_changed',
      why: 'the server has changed the tool\n- euros: number\n+ dollars: number',
      definition: 'd'.repeat(64),
    },
    refund,
  ),
  client_tool: asked({ kind: 'client_tool', why: 'the caller executes it' }, refund),
  form: askedByServer({ form: FORM }),
  address: askedByServer({ url: 'https://pay.example/1' }),
};

/** Returns the request of a call whose MCP server asks for something first. */
function askedByServer(ask: Pick<ServerAsk, 'form' | 'url'>): Request {
  const mcp = { server: 'travel', tool: 'book', hash: 'h' };
  const tools = [toolDefinition('put', 'once', { mcp })];
  const state = runWithCall('put', { arguments: '{"city":"Oslo"}' }, begun(config({ tools })));
  const asks = [{ key: 'k', message: 'Book a train to Oslo?', ...ask }];
  const about = { asks, answers: [], rounds: 1 };
  const [tool] = tools;
  if (tool === undefined) throw new Error('no tool');
  const request = { id: 'r1', ...askRequest(about, { tool, at: 1_000_000 }) };
  const work = { name: ID, phase: 'waiting', key: 'key-1', request, asked: about };
  return toRequest({ ...state, firstRunId: 'f' }, work as never, RUN);
}

const WIDTHS = [40, 80, 120];

/** Commands as a request has them. */
const asGiven = (text: string): string => text;

/** Returns what the MCP tools show of a request, which has no width. */
function toModels(request: Request): Readonly<Record<string, readonly string[]>> {
  return {
    'MCP agent_status': [JSON.stringify(toPending(RUN, request, asGiven))],
    'MCP list_requests': [
      JSON.stringify({ ...shownToModel('run-1', request, asGiven), raisedAt: 0 }, null, 1),
    ],
  };
}

/** Returns everything that people see of a request, at one width. */
function seen(request: Request, width: number): string {
  const program = (words: readonly string[]): string =>
    shellLine({ program: 'perdure', operands: [], options: words });
  const commands = decidingCommands(RUN, request, NOW).map(({ words, purpose }) => ({
    command: program(words),
    purpose,
  }));
  const whole = program(['inbox', RUN, 'r1', '--full']);
  const view = { run: RUN, request, unreadable: null, commands, whole };
  const [note] = requestMemo([request]).requests;
  const listed = note === undefined ? [] : [{ ...note, run: RUN, agent: 'desk' }];
  const show = (): string => program(['inbox', RUN, 'r1']);
  const parts = {
    'inbox, and runs of called agents': inboxLines(listed, { width, now: NOW, show }),
    'inbox RUN, status, prompt, run, attach, approve without --digest': requestLines(view, {
      width,
      full: false,
      now: NOW,
    }),
    'line of a step': wrapped(
      `request r1 (${request.kind}): ${presentRequest(request).headline}`,
      width,
    ),
    'notice, memo': presentRequest(request).notice.split('\n'),
    fix: [request.fix],
    'live line': [
      visible(`waiting_decision (${request.kind}): ${presentRequest(request).headline}`),
    ],
    'status line': [`${request.why}; decide: ${request.fix}`],
    ...(width === WIDTHS.at(-1) && toModels(request)),
  };
  for (const [name, lines] of Object.entries(parts).slice(0, 3)) {
    // The words of a command stay whole.
    const wide = lines.filter(
      (line) => stringWidth(line) > width && !/[0-9a-f]{32}|^ *'\{/.test(line),
    );
    expect({ name, wide }).toEqual({ name, wide: [] });
  }
  return Object.entries(parts)
    .map(([name, lines]) => `=== ${name}, ${width} columns\n${lines.join('\n')}\n`)
    .join('\n');
}

describe('what people see of a request', () => {
  test.each(Object.entries(REQUESTS))(
    'of kind %s, in every place and width',
    async (name, request) => {
      const widths = WIDTHS.map((width) => seen(request, width));
      // The local time differs from machine to machine.
      const text = widths.join('\n').replaceAll(/^raised: .*,/gm, 'raised: TIME,');
      await expect(text).toMatchFileSnapshot(`seen/${name}.txt`);
    },
  );

  test('over MCP, a plan in a status has its actions, and if they are long, how to read them all', () => {
    const { shown } = toPending(RUN, planned({ ...plan, actions: actions.slice(1) }), asGiven);
    expect(shown).toContain('! a2  delete event e9\n     delete_event {"event":"e9"}\n');
    const many = Array.from({ length: 40 }, (_, at) => {
      return { id: `a${at + 1}`, tool: 'delete_event', arguments: { event: `e${at}` } };
    });
    const long = toPending(RUN, planned({ ...plan, actions: many }), asGiven).shown;
    expect(long).toMatch(/ more characters; read them with: .*perdure inbox desk-1 r1 --full$/);
    expect(long.length).toBeLessThan(2_200);
  });

  test('covers every kind', () => {
    const kinds = new Set(Object.values(REQUESTS).map(({ kind }) => kind));
    expect([...kinds].toSorted()).toEqual(Object.keys(OFFERED).toSorted());
  });

  test.each(['approval', 'outcome_unknown', 'safety_check', 'tool_changed', 'client_tool'])(
    'has the description by the tool, and both forms of the arguments: %s',
    (name) => {
      const request = REQUESTS[name] ?? asked({ kind: 'approval', why: '' });
      for (const part of seen(request, 120).split('=== ').slice(1, 5)) {
        expect(part).toContain('refund 60 € to order 17');
        if (!part.startsWith('line of a step')) expect(part).toMatch(/"60"[^]*60/);
      }
    },
  );

  test('shows who asks, and the question once, in its own lines', () => {
    const texts = ['question', 'confirm'].map((name) =>
      seen(REQUESTS[name] ?? asked({ kind: 'question', why: '' }), 80),
    );
    expect(texts[0]).toContain('what: the model asks\n');
    expect(texts[0]).toContain('\n> may decide: anyone\n');
    expect(texts[1]?.split('\n=== ')[1]?.match(/the graph asks/g)).toHaveLength(1);
    expect(texts[1]).toContain('perdure answer desk-1 r1 yes --digest');
    expect(texts[1]).toContain('the graph asks at node sure: Send 3 mails to ann?\n');
    for (const text of texts) expect(text).not.toMatch(/\{"?question|keyed|node:sure/);
  });

  test('that a server asks has the fields of its form and the arguments of the call in every place', () => {
    const request = REQUESTS['form'] ?? asked({ kind: 'question', why: '' });
    const { notice } = presentRequest(request);
    expect(notice).toMatch(/^> seats \(integer, required\)[^]*\ncity: "Oslo"$/m);
    const lines = seen(request, 120);
    expect(lines).toContain(`--result '{"seats":1,"confirm":"TEXT","name":"TEXT"}'`);
    const { fields } = toPending(RUN, request, asGiven);
    expect(fields).toEqual([
      'seats (integer, required): How many seats [at least 1; default 1]',
      'confirm (true or false, required): Really book',
      'name (text, required): Who travels',
    ]);
    const view = { run: RUN, request, unreadable: null, commands: [], whole: 'x' };
    const shown = requestLines(view, { width: 120, full: false, now: NOW });
    expect(shown.filter((line) => line.includes('asks before it executes'))).toHaveLength(1);
    const address = REQUESTS['address'] ?? request;
    expect(toPending(RUN, address, asGiven).url).toBe('https://pay.example/1');
  });

  test('shows the value that a reference stood for, not the description made before', () => {
    const call = {
      id: 'node_go_1.a2',
      name: 'delete_event',
      arguments: '{"event":{"$ref":"a1","path":"id"}}',
      digest: 'x',
      after: ['node_go_1.a1'],
      summary: 'delete event {"$ref":"a1"}',
      asks: true as const,
    };
    const first = { id: 'node_go_1.a1', name: 'find_event', arguments: '{}', digest: 'y' };
    const found = {
      id: first.id,
      ok: true,
      text: '{"id":"e9"}',
      output: { id: 'e9' },
      executed: true,
    };
    const batch = { calls: [first, call], results: [found, null] };
    const policy = { onFailed: 'skip', hasBegun: () => false } as const;
    const [, ready] = releaseReadyCalls(batch as never, policy).calls;
    const request = asked({ kind: 'approval', why: 'the tool requires approval' }, ready);
    expect(request.shown).toContain('event: "e9"');
    expect(seen(request, 80)).not.toContain('$ref');
  });

  test('prints a plan once, and all of its arguments in full', () => {
    const request = REQUESTS['plan'] ?? asked({ kind: 'plan', why: '' });
    const view = { run: RUN, request, unreadable: null, commands: [], whole: 'inbox --full' };
    const lines = (full: boolean): string =>
      requestLines(view, { width: 80, full, now: NOW }).join('\n');
    expect(lines(false).split('create the event Lunch')).toHaveLength(2);
    expect(lines(false)).not.toContain('in its own words');
    expect(lines(false)).toContain('TRUNCATED');
    expect(lines(false)).toContain('inbox --full');
    expect(lines(true).replaceAll(/\s/g, '')).toContain('n'.repeat(900));
    expect(lines(true)).not.toContain('TRUNCATED');
  });

  test('shows a plan of ten actions on one screen, and takes each word that it offers', () => {
    const ten = Array.from({ length: 10 }, (_, at) => {
      const id = `a${at + 1}`;
      const asks = { then: 'ask' as const, why: 'the tool requires approval of every call' };
      const given = { title: `Meeting ${at}`, with: ['ann', 'bob'], notes: 'n'.repeat(at * 60) };
      if (at % 3 > 0) return { id, tool: 'put', arguments: given, shown: `add meeting ${at}` };
      const earlier = at === 0 ? {} : { event: { $ref: 'a2', path: 'id' } };
      return { id, tool: 'pay', arguments: { ...given, ...earlier }, asks };
    });
    const request = planned({ actions: ten, done: [], asks: true });
    const view = { run: RUN, request, unreadable: null, commands: [], whole: 'x', prompts: true };
    const shown = (full: boolean): readonly string[] =>
      requestLines(view, { width: 80, full, now: NOW });
    const lines = shown(false);
    expect(lines.length).toBeLessThan(40);
    const text = lines.join('\n');
    expect(text.match(/add meeting 4/g)).toHaveLength(1);
    expect(text).toContain('! a4   pay   once');
    expect(text).toContain('<a2.id>');
    expect(text).toContain('! a1, a4, a7, a10: the tool requires approval of every call');
    expect(text).toContain('read it in full; type: full');
    expect(shown(true).join('').replaceAll(/\s/g, '')).toContain('n'.repeat(540));
    const offered = wordsOf(request);
    expect(offered).toEqual(['yes', 'no', 'some a1', 'nothing', 'edit …', 'full', 'later']);
    for (const word of offered) {
      expect(readPlain(word, request) ?? readChoice(word, request)).not.toBeNull();
    }
    expect(readPlain('some a2 a3', request)).toEqual({ as: 'some', actions: ['a2', 'a3'] });
    expect(readPlain('all but a2', request)).toMatchObject({ as: 'some' });
    expect(readPlain('edit later please', request)).toMatchObject({ as: 'answer' });
    for (const line of ['y', 'a99', 'hello', '']) expect(readPlain(line, request)).toBeNull();
  });
});

test.each([
  [
    {
      type: 'object',
      properties: {
        signature: { type: 'string', description: 'as base64' },
        at: { type: 'number' },
      },
      required: ['signature'],
    },
    ['> signature (text, required): as base64', '> at (number)'],
  ],
  [{ type: 'array', items: { type: 'string' } }, ['> {"type":"array","items":{"type":"string"}}']],
])('a request to execute a call says what the result has: %#', (result, lines) => {
  const tools = [toolDefinition('put', 'keyed', { kind: 'client', result })];
  const state = runWithCall('put', {}, begun(config({ tools })));
  const request = { id: 'r1', raisedAt: 1, kind: 'client_tool', why: 'x' };
  const work = { name: ID, phase: 'waiting', request };
  const asks = toRequest({ ...state, firstRunId: 'f' }, work as never, RUN);
  expect(asks.result).toEqual(result);
  const view = { run: RUN, request: asks, unreadable: null, commands: [], whole: 'x' };
  const shown = requestLines(view, { width: 80, full: false, now: NOW }).join('\n');
  expect(shown).toContain(['the result is JSON:', ...lines].join('\n'));
});

test('a call that its author does not describe is shown with the names of its arguments', () => {
  const given = { arguments: '{"euros":5,"note":"for \u202elunch","to":"ann"}' };
  const { headline } = presentRequest(asked({ kind: 'approval', why: 'a rule' }, given));
  expect(headline).toMatch(/^put · .* · euros: 5, note: "for \\u202elunch", to: "ann"$/);
  const long = { arguments: JSON.stringify({ a: 'x'.repeat(500), b: 'y'.repeat(500), c: 1 }) };
  const cut = presentRequest(asked({ kind: 'approval', why: 'a rule' }, long)).headline;
  expect(cut).toContain('b: "yyy');
  expect(cut.length).toBeLessThan(220);
});
