import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { evaluation } from '../../src/cli/commands/eval.js';
import { rerun as rerunCommand } from '../../src/cli/commands/rerun.js';
import { playRun } from '../../src/memory/run-in-memory.js';
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
import { commandLine } from '../support/command.js';
import { runInProcess } from '../support/in-process.js';
import { useSourceBundle } from '../support/memory.js';

let folder: string;

beforeAll(async () => {
  await useSourceBundle();
  folder = await mkdtemp(join(tmpdir(), 'cases-'));
  const refund = defineTool({
    name: 'refund',
    description: 'Pays money back.',
    input: z.object({ order: z.int() }),
    effect: 'once',
    approval: 'always',
    execute: () => 'paid',
  });
  const run = await playRun(defineAgent({ name: 'desk', instructions: 'Help.', tools: [refund] }), {
    message: 'Refund order 17',
    model: scriptedModel([replyCall('refund', { order: 17 }), replyText('Paid.')]),
    on: { request: { refund: approve() } },
  });
  const recording = recordingOf(run, { blobs: {} });
  await writeRecording(join(folder, 'a-refund.json'), recording);
  await writeRecording(join(folder, 'b-again.json'), recording);
});
afterAll(async () => await rm(folder, { recursive: true }));

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
    expect(stdout.split('\n').slice(0, 8)).toEqual([
      'a-refund',
      expect.stringMatching(/^ +ended +tokens +latency +short$/),
      expect.stringMatching(/^ {2}recorded +answer +\S.* +\d+\.\d s$/),
      expect.stringMatching(/^ {2}replayed +answer +\S.* +-$/),
      expect.stringMatching(/^ {2}tiny +answer +\S.* +\d+\.\d s +1$/),
      '  calls: refund',
      '  answer: "Paid." (recorded, replayed)',
      '  answer: "Done." (tiny)',
    ]);
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

  test('eval and rerun name a model without a key, and a folder that does not exist', async () => {
    const home = await mkdtemp(join(tmpdir(), 'eval-'));
    const config = join(home, 'perdure.config.ts');
    await writeFile(config, CONFIG);
    const place = { home, config, env: { OPENAI_API_KEY: '', OPENAI_BASE_URL: '' } };
    const file = [join(folder, 'a-refund.json')];
    const without = expect.objectContaining({
      name: 'UsageError',
      message: expect.stringMatching(
        /^--model "nope" \(no entry in `models` of the configuration\): No model provider is set: set OPENAI_API_KEY/,
      ) as unknown,
    }) as unknown;
    const rerunning = runInProcess(rerunCommand, { file, model: 'nope' }, place);
    await expect(rerunning).rejects.toEqual(without);
    const evaluating = runInProcess(evaluation, { folder, model: 'nope' }, place);
    await expect(evaluating).rejects.toEqual(without);
    const missing = { folder: join(home, 'nofolder'), model: 'demo' };
    await expect(runInProcess(evaluation, missing, place)).rejects.toThrow(
      `folder: expected a readable folder of recordings, got "${missing.folder}", which does not exist`,
    );
    const scorers = { ...missing, scorers: 'no-scorers.ts' };
    await expect(runInProcess(evaluation, scorers, place)).rejects.toThrow(
      '--scorers: expected an existing file, got no-scorers.ts; name one that exists',
    );
    const ofFolder = await runInProcess(rerunCommand, { file: [folder] }, place);
    expect(ofFolder.stdout).toMatch(/: error: expected a recording, got a folder, /);
    expect(ofFolder.stdout).toContain(` ${folder} --model NAME`);
    const none = { ...missing, runs: 0 };
    await expect(runInProcess(evaluation, none, place)).rejects.toMatchObject({
      name: 'UsageError',
      message: expect.stringMatching(/^--runs: expected /) as unknown,
    });
    await rm(home, { recursive: true });
  });

  test('eval leaves a report that has not finished, if it fails', async () => {
    const home = await mkdtemp(join(tmpdir(), 'eval-'));
    const [config, junit] = [join(home, 'perdure.config.ts'), join(home, 'junit.xml')];
    await writeFile(config, CONFIG);
    await writeFile(junit, '<testsuites>of yesterday</testsuites>');
    const options = { folder: home, model: 'demo', junit };
    await expect(runInProcess(evaluation, options, { home, config })).rejects.toThrow(
      'folder: expected recordings',
    );
    const xml = await readFile(junit, 'utf8');
    expect(xml).toContain('<testsuite name="perdure eval demo" tests="1" failures="0" errors="1"');
    expect(xml).toContain('<error message="not finished');
    await rm(home, { recursive: true });
  });

  test('eval ends by Ctrl-C with what is there', async () => {
    const command = await commandLine();
    const config = join(command.folder, 'perdure.config.ts');
    await writeFile(config, CONFIG);
    for (const json of [false, true]) {
      // The first case ends, and the model does not reply to the second one.
      const name = `silent-${json}`;
      stub.script(...script, replyText('Late.', { holdBeforeHeaders: name }));
      const junit = join(command.folder, `junit-${json}.xml`);
      const running = command.start(
        [
          'eval',
          folder,
          `--config=${config}`,
          '--model=tiny',
          '--at-once=1',
          `--junit=${junit}`,
          ...(json ? ['--json'] : []),
        ],
        { env: { OPENAI_BASE_URL: stub.baseUrl, OPENAI_API_KEY: 'sk-test' } },
      );
      await running.prints('[1/2] a-refund: completed (answer)');
      await running.until(stub.barrier(name).reached);
      running.child.kill('SIGINT');
      const { code, stdout } = await running.ended;
      expect(code).toBe(130);
      const xml = await readFile(junit, 'utf8');
      expect(xml).toContain('name="a-refund"');
      expect(xml).toContain('<error message="not finished');
      expect(xml).toMatch(/<\/testsuites>\n$/);
      if (!json) expect(stdout).toContain('1 case with tiny: interrupted before the last run');
      else {
        expect(JSON.parse(stdout)).toMatchObject({
          passed: false,
          finished: false,
          cases: [{ name: 'a-refund', candidates: [{ error: null }] }],
        });
      }
    }
  });

  test('rerun goes on after a file that cannot be read, and a model that cannot be called', async () => {
    const home = await mkdtemp(join(tmpdir(), 'eval-'));
    const config = join(home, 'perdure.config.ts');
    await writeFile(config, CONFIG);
    const broken = join(home, 'broken.json');
    await writeFile(broken, '{"format":');
    const foreign = join(home, 'foreign.json');
    const recorded = await readFile(join(folder, 'a-refund.json'), 'utf8');
    const of = JSON.parse(recorded) as { runs: { agent: string }[] };
    const runs = of.runs.map((run) => ({ ...run, agent: 'stranger' }));
    await writeFile(foreign, JSON.stringify({ ...of, runs }));
    const [good, other] = [join(folder, 'a-refund.json'), join(folder, 'b-again.json')];
    const file = [good, broken, foreign, other];
    const place = { home, config };
    const { stdout, code } = await runInProcess(rerunCommand, { file }, place);
    expect(stdout.split('\n')).toEqual([
      `${good}: same`,
      expect.stringMatching(/broken\.json: error: expected JSON as `record` writes it/),
      expect.stringMatching(
        /foreign\.json: error: agent: expected an agent of the configuration, got "stranger" \(it has: desk\)/,
      ),
      `${other}: same`,
    ]);
    expect(code).toBe(1);
    const evaluated = await runInProcess(
      evaluation,
      { folder: foreign, model: 'tiny' },
      { ...place, env: { OPENAI_BASE_URL: stub.baseUrl, OPENAI_API_KEY: 'sk-test' } },
    );
    expect(evaluated.stdout + evaluated.stderr).toContain(
      'got "stranger" (it has: desk); give the config of that agent with --config',
    );
    expect(evaluated.stdout + evaluated.stderr).not.toContain('give the agent of the recording');
    stub.answer(() => replyError(401, { error: { message: 'no such key' } }));
    const json = await runInProcess(
      rerunCommand,
      { file, model: 'tiny' },
      { ...place, json: true, env: { OPENAI_BASE_URL: stub.baseUrl, OPENAI_API_KEY: 'sk-test' } },
    );
    expect(JSON.parse(json.stdout)).toMatchObject([
      { file: good, ok: false, divergence: null, error: expect.stringContaining('no such key') },
      { file: broken, ok: false, error: expect.stringContaining('expected JSON') },
      { file: foreign, ok: false, error: expect.stringContaining('got "stranger"') },
      { file: other, ok: false, error: expect.stringContaining('no such key') },
    ]);
    expect(json.code).toBe(1);
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
    for (const misspelled of ['dmo', 'dem']) {
      const options = { file, model: misspelled };
      await expect(runInProcess(rerunCommand, options, { home, env, config })).rejects.toThrow(
        `--model: expected a model, got "${misspelled}" (did you mean "demo")`,
      );
    }
    await rm(home, { recursive: true });
  });
});
