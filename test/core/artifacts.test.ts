import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { takeArtifacts, callArtifacts } from '../../src/core/calls/artifacts.js';
import { succeededCall, type CallResult } from '../../src/core/transcript/call-result.js';
import { artifactsBefore } from '../../src/core/state/fork.js';
import { parseJson } from '../../src/core/text/json.js';
import type { RunArtifact, CreatedArtifact, Message } from '../../src/core/transcript/messages.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import { callReply, begun, config, toolDefinition, withResults } from '../support/scripts.js';
import { getOpenBatch, getOutcome } from '../../src/core/state/turn.js';

const look = toolDefinition('look', 'read');
const done = toolDefinition('done', 'read', { ends: true });
const list = toolDefinition('list_artifacts', 'read', { kind: 'artifacts' });

const made = (name: string, value = name): CreatedArtifact => ({
  name,
  blob: { sha256: value.padEnd(64, '0'), bytes: 5 },
  kind: 'array of 3',
});

const result = (id: string, artifact: CreatedArtifact): CallResult => ({
  id,
  ok: true,
  text: '[1,2]',
  artifact,
  executed: true,
});

/** A turn in which the calls of each message made these artifacts. */
function having(...batches: readonly (readonly CreatedArtifact[])[]): RunState {
  let state = begun(config({ tools: [look, done, list], limits: { toolCalls: null } }));
  for (const batch of batches) {
    const reply = callReply(...batch.map((_, n) => ['look', { n }] as const));
    state = reduce(state, { type: 'model-replied', reply, at: 0 });
    const results = getOpenBatch(state)?.calls.map(({ id }, n) =>
      result(id, batch[n] ?? made('x')),
    );
    // In the order in which they end, not in which they were requested.
    state = withResults(state, results?.toReversed() ?? []);
  }
  return state;
}

const names = ({ artifacts = [] }: RunState): readonly string[] =>
  artifacts.map(({ name }) => name);
const texts = ({ transcript }: RunState): readonly string[] =>
  transcript.messages.filter(({ role }) => role === 'tool').map(({ text }) => text);

describe('the artifacts of a run', () => {
  test('are known by name, with the call that made each, in call order', () => {
    const state = having([made('a'), made('b')]);
    expect(state.artifacts).toEqual([
      { ...made('a'), tool: 'look', call: 'call_1_1_0' },
      { ...made('b'), tool: 'look', call: 'call_1_1_1' },
    ]);
    expect(texts(state)[0]).toBe(
      `[artifact "a": array of 3, 5 bytes. The whole value is stored: pass it to a tool by this name, or read ` +
        `it with read_result({"ref":"${made('a').blob.sha256}","offset":0})]\nThe value:\n[1,2]`,
    );
    expect(state.transcript.messages.at(-1)).toMatchObject({ blob: made('b').blob });
  });

  test('are absent from a run that has none', () => {
    const state = begun(config());
    expect(takeArtifacts(state, { step: 1, at: 0, calls: [], results: [] }, []).state).toBe(state);
    expect(state).not.toHaveProperty('artifacts');
    expect(callArtifacts(state, { arguments: '{"from":"a"}' }, look)).toBeNull();
  });

  test('keep their names: another value gets a number, the same value keeps its name', () => {
    const state = having([made('a', '1'), made('a', '2')], [made('a', '1')], [made('a', '3')]);
    expect(names(state)).toEqual(['a', 'a_2', 'a_3']);
    expect(texts(state)[1]).toContain('"a_2" ("a" already names another value)');
    expect(texts(state)[2]).toContain('[artifact "a": ');
    expect(texts(state)[2]).not.toContain('another value');
  });

  test('never get a number twice, even if the first artifact is dropped', () => {
    const state = having([made('a', '1'), made('a', '2')]);
    const later = { ...state, artifacts: state.artifacts?.slice(1) ?? [] };
    const { batch, ...rest } = { batch: { step: 2, at: 0, calls: [], results: [] }, ...later };
    const call = { id: 'c', name: 'look', arguments: '{}', digest: '' };
    const taken = takeArtifacts(rest, { ...batch, calls: [call] }, [result('c', made('a', '3'))]);
    expect(names(taken.state)).toEqual(['a_2', 'a_3']);
  });

  test('with a name that looks numbered leave the plain name free', () => {
    const state = having([made('report_2024', '1')], [made('report', '2'), made('report', '1')]);
    expect(names(state)).toEqual(['report_2024', 'report', 'report_2']);
    expect(texts(state)[1]).toContain('[artifact "report": ');
    // A tool has used the next numbered name itself.
    const taken = having([made('a', '1'), made('a_2', '2'), made('a', '3'), made('a', '4')]);
    expect(names(taken)).toEqual(['a', 'a_2', 'a_3', 'a_4']);
    const large = having([made('a_999999', '1'), made('a', '2'), made('a', '3'), made('a', '4')]);
    expect(new Set(names(large)).size).toBe(4);
  });

  test('are the newest 300 at most, and fit into what a segment can pass on', () => {
    const many = Array.from({ length: 320 }, (_, n) => [made(`n${n}`)]);
    expect(names(having(...many))).toEqual(many.slice(20).map(([one]) => one?.name));
    const wide = many.map(([one]) => [{ ...one!, summary: '€'.repeat(300) }]);
    const index = having(...wide).artifacts ?? [];
    expect(index.at(-1)?.name).toBe('n319');
    expect(Buffer.byteLength(JSON.stringify(index))).toBeLessThan(240 * 1024);
    expect(index.length).toBeGreaterThan(140);
  });

  test('of a tool that ends the turn do not change its answer', () => {
    let state = begun(config({ tools: [done] }));
    state = reduce(state, { type: 'model-replied', reply: callReply(['done']), at: 0 });
    const [call] = getOpenBatch(state)?.calls ?? [];
    if (call === undefined) throw new Error('no call');
    const ended = succeededCall(call, done, { text: '[1]', output: [1], artifact: made('a') });
    state = withResults(state, [ended]);
    expect(getOutcome(state)).toMatchObject({ reason: 'tool', answer: '[1]', output: [1] });
    expect(names(state)).toEqual(['a']);
  });

  test('of canceled calls are recorded too', () => {
    let state = begun(config({ tools: [look] }));
    state = reduce(state, { type: 'model-replied', reply: callReply(['look'], ['look']), at: 0 });
    const known = result('call_1_1_0', made('a'));
    state = reduce(state, { type: 'call-finished', result: known, at: 0 });
    state = reduce(state, { type: 'turn-interrupted', by: 'cancelTurn', at: 0 });
    expect(names(state)).toEqual(['a']);
    expect(texts(state)[0]).toContain('[artifact "a": ');
  });

  test('are listed from the state, newest first, and the list does not count as a call', () => {
    const listed = (state: RunState): string => {
      const reply = callReply(['list_artifacts']);
      const next = reduce(state, { type: 'model-replied', reply, at: 0 });
      expect(next.turn.spent.toolCalls).toBe(state.turn.spent.toolCalls);
      return texts(next).at(-1) ?? '';
    };
    expect(listed(having())).toBe('There are no artifacts yet.');
    const two = having([made('a')], [{ ...made('b'), summary: 'of this year' }]);
    expect(listed(two)).toBe(
      '2 artifacts, newest first:\n' +
        '- b: array of 3, 5 B, made by look (call_1_2_0): of this year\n' +
        '- a: array of 3, 5 B, made by look (call_1_1_0)',
    );
    const many = having(...Array.from({ length: 103 }, (_, n) => [made(`n${n}`)]));
    expect(listed(many).split('\n').at(-1)).toBe('and 3 older');
  });

  test('are listed only once in one message', () => {
    const wide = Array.from({ length: 100 }, (_, n) => [
      { ...made(`n${n}`), summary: 's'.repeat(300) },
    ]);
    const state = having(...wide);
    const before = texts(state).length;
    const reply = callReply(...Array.from({ length: 128 }, () => ['list_artifacts'] as const));
    const listed = texts(reduce(state, { type: 'model-replied', reply, at: 0 })).slice(before);
    expect(listed[0]).toContain('100 artifacts, newest first');
    expect(listed.at(-1)).toMatch(/not_executed.*ask again in the next/);
    expect(listed.join('').length).toBeLessThan(130_000);
  });

  test('made by later messages are not part of a fork', () => {
    const { artifacts = [], transcript } = having([made('a')], [made('b')]);
    const of = (at: number): readonly string[] =>
      artifactsBefore(artifacts, transcript.messages, at).map(({ name }) => name);
    const made2 = transcript.messages.findLastIndex((one: Message) => one.role === 'tool');
    expect([of(made2 + 1), of(made2), of(1)]).toEqual([['a', 'b'], ['a'], []]);
  });
});

describe('a call', () => {
  const state = having([made('rows')], [made('rows', '2')], [made('note')]);
  const sent = (args: unknown, parameters = {}) =>
    callArtifacts(state, { arguments: JSON.stringify(args) }, { parameters });
  const named = (args: unknown, parameters = {}): readonly string[] =>
    (sent(args, parameters)?.named ?? []).map(({ name }) => name);

  test('gets the artifacts that its arguments name, at any depth', () => {
    expect(sent({ from: 'rows' })).toEqual({ named: [{ name: 'rows', blob: made('rows').blob }] });
    expect(named({ all: [{ deep: ' Rows_2 ' }, 'NOTE'] })).toEqual(['rows_2', 'note']);
    expect(named({ text: 'the rows of today', rows: 1 })).toEqual([]);
  });

  test('gets the artifacts that a default in its schema names', () => {
    const parameters = { type: 'object', properties: { from: { default: 'rows' } } };
    expect(named({}, parameters)).toEqual(['rows']);
  });

  test('gets the names of others only if it may have meant one of them', () => {
    expect(sent({ from: 'row' })).toEqual({ known: ['note', 'rows_2', 'rows'] });
    expect(sent({ n: 1, text: 'two words' })).toEqual({});
  });

  test('gets the newest twenty names and at most fifty artifacts', () => {
    const many = having(...Array.from({ length: 60 }, (_, n) => [made(`n${n}`)]));
    const all = { of: names(many) };
    const json = JSON.stringify(all);
    expect(callArtifacts(many, { arguments: json }, look)?.named).toHaveLength(50);
    const none = callArtifacts(many, { arguments: '{"a":"x"}' }, look);
    expect(none?.known).toEqual(Array.from({ length: 20 }, (_, n) => `n${59 - n}`));
  });

  test('gets an artifact exactly if one of its strings is the name, whatever the arguments', () => {
    const artifacts: readonly RunArtifact[] = state.artifacts ?? [];
    const text = fc.oneof(fc.constantFrom('rows', 'ROWS', 'rows_2', 'note', 'no'), fc.string());
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        text,
        fc.integer(),
        fc.constant(null),
        fc.array(tie('tree')),
        fc.dictionary(fc.string(), tie('tree')),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(fc.string(), tree), (args) => {
        const json = JSON.stringify(args);
        const found: string[] = [];
        JSON.stringify(parseJson(json), (_key, value: unknown) => {
          if (typeof value === 'string') found.push(value.trim().toLowerCase());
          return value;
        });
        const wanted = artifacts.filter(({ name }) => found.includes(name)).map((one) => one.name);
        expect(named(parseJson(json))).toEqual(wanted);
      }),
    );
  });

  test('accepts arguments of any form', () => {
    fc.assert(
      fc.property(fc.string(), (json) => {
        expect(callArtifacts(state, { arguments: json }, look)).not.toBeNull();
      }),
    );
    const deep = `${'['.repeat(50_000)}"rows"${']'.repeat(50_000)}`;
    expect(callArtifacts(state, { arguments: deep }, look)).not.toBeNull();
  });
});
