import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { evaluation } from '../../src/cli/commands/eval.js';
import { rerun as rerunCommand } from '../../src/cli/commands/rerun.js';
import { junitReport } from '../../src/cli/reports/eval-report.js';
import { playRun } from '../../src/memory/run-in-memory.js';
import {
  type EvalProgress,
  type EvaluateOptions,
  evaluate,
} from '../../src/recordings/evaluate.js';
import { writeRecording } from '../../src/recordings/recording-files.js';
import { recordingOf } from '../../src/recordings/rerun.js';
import {
  type Stub,
  approve,
  replyCall,
  replyError,
  replyText,
  scriptedModel,
  startStub,
} from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runInProcess } from '../support/in-process.js';
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
const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools: [refund] });
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
    [{ gates: { diverged: 2 } }, 'gates.diverged: expected a number from 0 to 1, got 2'],
    [{ gates: { speed: 2 } }, 'gates: expected scores, diverged, tokens, cost, latency, got speed'],
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

  test('writes JUnit that is XML, whatever a model answers', () => {
    const name = 'a]]>b<c>&"\u0000\u001B\uFFFE\uFFFF\uD800';
    const candidate = { run: null, scores: {}, error: name };
    const report = junitReport(
      {
        cases: [{ name, recorded: null, replayed: null, candidates: [candidate] }],
        gates: [{ name, bound: 0, actual: null, passed: false }],
        passed: false,
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
    await expect(evaluate(empty, { model: same })).rejects.toThrow(/expected a readable folder/);
  });
});

describe('the commands call the model that they are given', () => {
  let stub: Stub;
  beforeEach(async () => {
    stub = await startStub();
  });
  afterEach(async () => await stub.close());
  const script = [replyCall('refund', { order: 17 }), replyText('Done.')];
  const CONFIG = `
    import { defineAgent, defineConfig, defineTool } from 'perdure';
    import { z } from 'zod';
    const refund = defineTool({ name: 'refund', description: 'Pays.', effect: 'once', approval: 'always',
      input: z.object({ order: z.int() }), execute: () => { throw new Error('executed'); } });
    export default defineConfig({ agents: [defineAgent({ name: 'desk', instructions: 'Help.', tools: [refund] })] });
  `;
  const SCORERS = `
    export const scorers = { short: ({ run }) => run.answer.length < 10 };
    export const gates = { scores: { short: 0.9 } };
  `;

  test('eval prints the sides and the gates, and writes JSON and JUnit', async () => {
    const home = await mkdtemp(join(tmpdir(), 'eval-'));
    const [config, scorers, junit] = ['perdure.config.ts', 'evals.ts', 'junit.xml'].map((name) =>
      join(home, name),
    ) as [string, string, string];
    await writeFile(config, CONFIG);
    await writeFile(scorers, SCORERS);
    const env = { OPENAI_BASE_URL: stub.baseUrl, OPENAI_API_KEY: 'sk-test' };
    const options = { folder, model: 'tiny', atOnce: 1, scorers };
    const unwritable = { ...options, junit: home };
    await expect(runInProcess(evaluation, unwritable, { home, env, config })).rejects.toThrow(
      '--junit: expected a writable file, got ',
    );
    expect(stub.requests).toEqual([]);
    stub.script(...script, ...script);
    const { stdout, stderr, code } = await runInProcess(evaluation, options, { home, env, config });
    expect(stub.requests.map(({ body }) => body['model'])).toEqual(Array(4).fill('tiny'));
    expect(stderr.split('\n')).toEqual([
      '[1/2] a-refund: completed (answer), short 1',
      '[2/2] b-again: completed (answer), short 1',
    ]);
    expect(stdout).toMatch(/^ {2}calls +refund +refund +refund$/m);
    expect(stdout).toMatch(/^ {2}answer +"Paid\." +"Paid\." +"Done\."$/m);
    expect(stdout).toMatch(/^gate scores\.short +1 +at least 0\.9 +holds$/m);
    expect(stdout).toContain('2 cases with tiny: passed');
    expect(code).toBe(0);

    stub.script(replyCall('refund', { order: 18 }), ...script);
    const second = { ...options, junit };
    const json = await runInProcess(evaluation, second, { home, env, config, json: true });
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({
      model: 'tiny',
      passed: false,
      cases: [{ candidates: [{ run: { divergence: { kind: 'call' } } }] }, { name: 'b-again' }],
    });
    const xml = await readFile(junit, 'utf8');
    expect(xml).toContain('<testsuite name="perdure eval tiny" tests="5" failures="');
    expect(xml).toContain('<testcase classname="gates" name="diverged" time="0.000">');
    expect(xml).toContain('called refund {&quot;order&quot;:18}');
    await rm(home, { recursive: true });
  });

  test('rerun --model', async () => {
    const home = await mkdtemp(join(tmpdir(), 'eval-'));
    const config = join(home, 'perdure.config.ts');
    await writeFile(config, CONFIG);
    stub.script(...script);
    const env = { OPENAI_BASE_URL: stub.baseUrl, OPENAI_API_KEY: 'sk-test' };
    const file = [join(folder, 'a-refund.json')];
    const { stdout, code } = await runInProcess(
      rerunCommand,
      { file, model: 'tiny' },
      { home, env, config },
    );
    expect(stdout).toBe(`${file[0]}: same`);
    expect(code).toBe(0);
    expect(stub.requestCount).toBe(2);
    await rm(home, { recursive: true });
  });
});
