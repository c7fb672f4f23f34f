import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, onTestFinished } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { evalLines, junitReport } from '../../src/cli/reports/eval-report.js';
import { playRun } from '../../src/memory/run-in-memory.js';
import {
  type EvalProgress,
  type EvaluateOptions,
  evaluate,
} from '../../src/recordings/evaluate.js';
import { writeRecording } from '../../src/recordings/recording-files.js';
import { recordingOf } from '../../src/recordings/rerun.js';
import { approve, replyCall, replyError, replyText, scriptedModel } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { useSourceBundle } from '../support/memory.js';

const executed: string[] = [];
const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  input: z.object({ order: z.int() }),
  effect: 'once',
  approval: 'always',
  execute: ({ order }) => {
    executed.push(`refund ${order}`);
    return 'paid';
  },
});
const parts = { name: 'desk', instructions: 'Help.', tools: [refund] };
const desk = defineAgent(parts);
const price = { input: 1, cachedInput: 1, output: 2 };

let folder: string;
const priced = {
  ...scriptedModel([replyCall('refund', { order: 17 }), replyText('Paid.')]),
  price,
};

beforeAll(async () => {
  await useSourceBundle();
  folder = await mkdtemp(join(tmpdir(), 'cases-'));
  const run = await playRun(desk, {
    message: 'Refund order 17',
    model: priced,
    on: { request: { refund: approve() } },
  });
  const recording = recordingOf(run, { blobs: {} });
  await writeRecording(join(folder, 'a-refund.json'), recording);
  await writeRecording(join(folder, 'b-again.json'), recording);
  executed.length = 0;
});
afterAll(async () => await rm(folder, { recursive: true }));

const same = () => ({
  ...scriptedModel([replyCall('refund', { order: 17 }), replyText('Done, please call again.')]),
  price,
});

describe('an evaluation', () => {
  test('has the recorded, the replayed, and each run with the candidate side by side', async () => {
    const progress: EvalProgress[] = [];
    const { cases, gates, passed } = await evaluate(folder, {
      agents: [desk],
      model: same,
      runs: 2,
      scorers: {
        polite: ({ run, recorded, input }) => ({
          score: run.answer?.includes('please') === true && input === 'Refund order 17',
          reason: `it was ${recorded.answer}`,
        }),
      },
      gates: { scores: { polite: 1 }, tokens: 2, cost: 2 },
      onProgress: (one) => progress.push(one),
    });
    expect(cases.map(({ name }) => name)).toEqual(['a-refund', 'b-again']);
    const [first] = cases;
    const calls = [{ tool: 'refund', arguments: { order: 17 } }];
    expect(first?.recorded).toMatchObject({ answer: 'Paid.', calls, steps: 2 });
    expect(first?.recorded?.usage.costUsd).toBeGreaterThan(0);
    expect(first?.replayed).toMatchObject({ answer: 'Paid.', calls, divergence: null });
    expect(first?.candidates).toHaveLength(2);
    expect(first?.candidates[1]).toMatchObject({
      error: null,
      run: { answer: 'Done, please call again.', calls, divergence: null },
      scores: { polite: { score: 1, reason: 'it was Paid.' } },
    });
    expect(gates.map(({ name, passed: holds }) => [name, holds])).toEqual([
      ['errors', true],
      ['diverged', true],
      ['scores.polite', true],
      ['tokens', true],
      ['cost', true],
    ]);
    expect(passed).toBe(true);
    expect(progress.map(({ done, total }) => [done, total])).toEqual(
      [1, 2, 3, 4].map((n) => [n, 4]),
    );
    expect(executed).toEqual([]);
  });

  test('fails by the gate of the replays if the code has changed, whatever the candidate does', async () => {
    const changed = defineAgent({ ...parts, rules: [{ tool: 'refund', then: 'deny' }] });
    const gate = async (agent: Agent, replayed?: number) => {
      const given = replayed === undefined ? {} : { replayed };
      const gates = { diverged: 1, ...given };
      const result = await evaluate(folder, { agents: [agent], model: same, gates });
      return result.gates.find(({ name }) => name === 'replayed');
    };
    expect(await gate(desk, 0)).toEqual({ name: 'replayed', bound: 0, actual: 0, passed: true });
    expect(await gate(changed, 0.9)).toMatchObject({ actual: 1, passed: false });
    expect(await gate(changed)).toBeUndefined();
  });

  test('goes on after a case that cannot be read, a model that fails, and a scorer that throws', async () => {
    const broken = join(folder, 'c-broken.json');
    await writeFile(broken, '{"format":"perdure/recording","version":1,"runs":[],"blobs":[]}');
    let models = 0;
    const { cases, gates, passed } = await evaluate(folder, {
      agents: [desk],
      model: () => {
        models += 1;
        if (models === 1) throw new Error('no such model');
        return same();
      },
      atOnce: 1,
      scorers: {
        odd: () => 7,
        bad: () => {
          throw new Error('oh');
        },
      },
    });
    await rm(broken);
    expect(cases.map(({ candidates }) => candidates[0]?.error)).toEqual([
      'no such model',
      'scorers.odd: expected a score from 0 to 1, or a boolean, got 7; scorers.bad: oh',
      expect.stringContaining('c-broken.json: recording.runs: expected a list'),
    ]);
    expect(gates[0]).toEqual({ name: 'errors', bound: 0, actual: 3, passed: false });
    expect(passed).toBe(false);
  });

  test('says why a model cannot be called, which is no difference', async () => {
    const model = scriptedModel(
      Array.from({ length: 40 }, () =>
        replyError(401, { error: { message: 'no such key', code: 'invalid_api_key' } }),
      ),
    );
    const { cases, gates } = await evaluate(join(folder, 'a-refund.json'), {
      agents: [desk],
      model,
    });
    expect(cases[0]?.candidates).toEqual([
      { run: null, scores: {}, error: expect.stringContaining('no such key') },
    ]);
    expect(gates[0]).toEqual({ name: 'errors', bound: 0, actual: 1, passed: false });
    // No run has ended, so none was compared.
    expect(gates[1]).toEqual({ name: 'diverged', bound: 0, actual: null, passed: false });
  });

  test('counts a case that cannot be read once, whatever the number of runs', async () => {
    const broken = join(folder, 'c-broken.json');
    await writeFile(broken, '{}');
    onTestFinished(async () => await rm(broken));
    const seen: (readonly [string, number, number])[] = [];
    const { gates, finished } = await evaluate(folder, {
      agents: [desk],
      model: same,
      runs: 2,
      atOnce: 1,
      onProgress: ({ name, done, total }) => void seen.push([name, done, total]),
    });
    expect(seen.slice(-2)).toEqual([
      [expect.stringMatching(/^(?!c-broken)/), 4, 6],
      ['c-broken', 6, 6],
    ]);
    expect(gates[0]).toEqual({ name: 'errors', bound: 0, actual: 1, passed: false });
    expect(finished).toBe(true);
  });

  test('fails by its gates: a call that was not recorded, and a cost without a price', async () => {
    const { cases, gates } = await evaluate(join(folder, 'a-refund.json'), {
      model: scriptedModel([replyCall('refund', { order: 18 }), replyText('Done.')]),
      gates: { cost: 1 },
    });
    expect(cases[0]?.candidates[0]?.run?.divergence).toMatchObject({
      kind: 'call',
      actual: { tool: 'refund', arguments: { order: 18 } },
      nearest: { tool: 'refund', arguments: { order: 17 } },
    });
    expect(gates).toEqual([
      { name: 'errors', bound: 0, actual: 0, passed: true },
      { name: 'diverged', bound: 0, actual: 1, passed: false },
      { name: 'cost', bound: 1, actual: null, passed: false },
    ]);
    expect(executed).toEqual([]);
  });

  test('does not wait for a scorer that hangs, and names it and the case', async () => {
    const { cases, passed } = await evaluate(join(folder, 'a-refund.json'), {
      agents: [desk],
      model: same,
      scorers: {
        hangs: async () => await new Promise<number>(() => undefined),
        quick: () => 1,
      },
      scorerTimeoutMs: 50,
    });
    const [candidate] = cases[0]?.candidates ?? [];
    expect(candidate?.error).toMatch(
      /^scorers\.hangs: expected a score of case ".*a-refund" within 50 ms, got none; /,
    );
    expect(candidate?.scores).toEqual({ quick: { score: 1 } });
    expect(passed).toBe(false);
  });

  test('does not fail by the latency of a recording in memory, which has none', async () => {
    const { gates, passed } = await evaluate(folder, {
      agents: [desk],
      model: same,
      gates: { latency: 1 },
    });
    expect(gates.at(-1)).toEqual({ name: 'latency', bound: 1, actual: null, passed: true });
    expect(passed).toBe(true);
  });

  test.each([
    [{ scorerTimeoutMs: 0 }, 'scorerTimeoutMs: expected a number of ms from 1 to'],
    [{ runs: 0 }, 'runs: expected a whole number from 1 to 100, got 0'],
    [
      { gates: { scores: { polite: 1 } } },
      'gates.scores: expected the name of a scorer, got polite',
    ],
    [{ gates: { replayed: 2 } }, 'gates.replayed: expected a number from 0 to 1, got 2'],
    [{ gates: { diverged: 2 } }, 'gates.diverged: expected a number from 0 to 1, got 2'],
    [
      { gates: { speed: 2 } },
      'gates: expected scores, diverged, replayed, tokens, cost, latency, got speed',
    ],
    [{ scorers: { a: 'x' } }, 'scorers.a: expected a function, got "x"'],
  ])('refuses %j', async (options, message) => {
    const given = { model: same, ...options } as Parameters<typeof evaluate>[1];
    await expect(evaluate(folder, given)).rejects.toThrow(message);
  });

  test.each([
    ['runs', 0, 'runs: expected a whole number from 1 to 100, got 0'],
    [
      'model',
      undefined,
      'model: expected the name of a model, an entry, an adapter, or a function',
    ],
    ['agents', 7, 'agents: expected a list of agents, got 7'],
    ['scorers', null, 'scorers: expected an object of functions, got null'],
    ['gates', 7, 'gates: expected an object, got 7'],
    ['onProgress', 7, 'onProgress: expected a function, got 7'],
  ])('names an option of another type: %s', async (name, value, message) => {
    const options = { model: 'm', [name]: value } as EvaluateOptions;
    await expect(evaluate('cases', options)).rejects.toThrow(message);
  });

  test('does not fail a gate by rounding, and shows why one fails', async () => {
    const { gates } = await evaluate(join(folder, 'a-refund.json'), {
      agents: [desk],
      model: same,
      runs: 3,
      scorers: {
        fits: () => 0.7,
        close: () => 0.8999,
      },
      gates: { scores: { fits: 0.7, close: 0.9 } },
    });
    const [, , fits, close] = gates;
    expect(fits).toMatchObject({ name: 'scores.fits', passed: true });
    expect(fits?.actual).toBeLessThan(0.7);
    expect(close?.passed).toBe(false);
    const result = { cases: [], gates, passed: false, finished: true };
    expect(evalLines(result, 'm').join('\n')).toMatch(
      /scores\.close +0\.8999 +at least 0\.9 +fails/,
    );
  });

  test('writes whole reasons to JUnit, each score on a line of its own', () => {
    const long = 'because '.repeat(60).trim();
    const side = { answer: null, calls: [], steps: 1, latencyMs: 1, divergence: null };
    const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0, costUsd: null };
    const run = { ...side, usage, outcome: null, recording: null };
    const scores = { polite: { score: 0.5, reason: `${long}\nindeed` }, short: { score: 1 } };
    const candidate = { run, scores, error: `failed ${long}` };
    const cases = [{ name: 'a', recorded: null, replayed: null, candidates: [candidate] }];
    const report = junitReport({ cases, gates: [], passed: false, finished: true }, 'm');
    expect(report).toContain(`<error message="failed ${long}"/>`);
    expect(report.split('\n')).toEqual(
      expect.arrayContaining([
        `error: failed ${long}`,
        `polite 0.5: ${long}`,
        'indeed',
        'short 1</system-out>',
      ]),
    );
  });

  test('fails a case whose agent is not among those given', async () => {
    const other = defineAgent({ name: 'desks', instructions: 'Help.' });
    const asked: unknown[] = [];
    const { cases, gates, passed } = await evaluate(folder, {
      agents: [other],
      model: (recording) => {
        asked.push(recording);
        return same();
      },
    });
    expect(asked).toEqual([]);
    expect(cases.map(({ candidates }) => candidates[0]?.error)).toEqual(
      Array(2).fill(
        'agent: expected one of the given agents, got "desk" (nearest: desks); give the agent of the recording',
      ),
    );
    expect(cases[0]).toMatchObject({ recorded: { answer: 'Paid.' }, replayed: null });
    expect(gates[0]).toMatchObject({ name: 'errors', actual: 2 });
    expect(passed).toBe(false);
  });

  test('follows links to cases, and fails one that leads nowhere', async () => {
    const links = await mkdtemp(join(tmpdir(), 'links-'));
    await symlink(join(folder, 'a-refund.json'), join(links, 'linked.json'));
    await symlink(join(folder, 'gone.json'), join(links, 'broken.json'));
    await mkdir(join(links, 'folder.json'));
    await symlink(folder, join(links, 'other.json'));
    const { cases } = await evaluate(links, { agents: [desk], model: same });
    expect(cases.map(({ name, candidates }) => [name, candidates[0]?.error ?? null])).toEqual([
      [
        'broken',
        expect.stringContaining('got no such file; correct the name, or record a run with: '),
      ],
      ['linked', null],
    ]);
    await rm(links, { recursive: true });
  });

  test('returns what is over when it is aborted', async () => {
    const controller = new AbortController();
    const hanging = { ...same(), call: async () => await new Promise<never>(() => undefined) };
    let models = 0;
    const result = await evaluate(folder, {
      agents: [desk],
      model: () => {
        models += 1;
        if (models === 1) return same();
        setImmediate(() => controller.abort());
        return hanging;
      },
      runs: 2,
      atOnce: 1,
      signal: controller.signal,
    });
    expect(models).toBe(2);
    expect(result).toMatchObject({
      passed: false,
      finished: false,
      cases: [{ name: 'a-refund', replayed: null, candidates: [{ error: null }] }],
    });
    expect(result.cases).toHaveLength(1);
  });

  test('writes JUnit that is XML, whatever a model answers', () => {
    const name = 'a]]>b<c>&"\u0000\u001B\uFFFE\uFFFF\uD800';
    const candidate = { run: null, scores: {}, error: name };
    const report = junitReport(
      {
        cases: [{ name, recorded: null, replayed: null, candidates: [candidate] }],
        gates: [{ name, bound: 0, actual: null, passed: false }],
        passed: false,
        finished: true,
      },
      name,
    );
    const safe = 'a]]&gt;b&lt;c&gt;&amp;&quot;\\u0000\\u001b\\ufffe\\uffff\\ud800';
    expect(report.split(safe).length).toBeGreaterThan(4);
    // oxlint-disable-next-line no-control-regex -- they are the subject
    expect(report).not.toMatch(/[\u0000-\u0008\u000B-\u001F\uFFFE\uFFFF]|\]\]>/);
  });

  test('names a folder without recordings', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'cases-'));
    await expect(evaluate(empty, { model: same })).rejects.toThrow(
      /expected recordings \(\*\.json\)/,
    );
    await rm(empty, { recursive: true });
    await expect(evaluate(empty, { model: same })).rejects.toThrow(
      `cases: expected a readable folder of recordings, got "${empty}", which does not exist`,
    );
  });
});
