import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { playRun } from '../../src/memory/run-in-memory.js';
import type { Recording } from '../../src/recordings/recording.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';
import { readRecording, writeRecording } from '../../src/recordings/recording-files.js';
import { recordingOf, rerun } from '../../src/recordings/rerun.js';
import { findSecret, withoutSecretsIn } from '../../src/recordings/record-run.js';
import { learnSecrets } from '../../src/secrets/known.js';
import { replyCall, replyText } from '../../src/testing.js';
import { CANARIES, CANARY_NAMES } from '../support/canaries.js';
import { look, useSourceBundle } from '../support/memory.js';

let recording: Recording;
let folder: string;
beforeAll(async () => {
  await useSourceBundle();
  folder = await mkdtemp(join(tmpdir(), 'hostile-'));
  const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools: [look] });
  const model = [replyCall('look', { n: 1 }), replyText('Done.')];
  recording = recordingOf(await playRun(desk, { message: 'Go', model }), { blobs: {} });
});
afterAll(async () => await rm(folder, { recursive: true }));

function changed(change: (run: Record<string, unknown>, whole: Record<string, unknown>) => void) {
  const copy = JSON.parse(JSON.stringify(recording)) as { runs: Record<string, unknown>[] };
  change(copy.runs[0]!, copy);
  return copy as unknown;
}

/** Facts that a recording may have, each with a secret in another place. */
const PLACES: Readonly<Record<string, (secret: string) => object>> = {
  message: (x) => ({ type: 'message', message: { message: x } }),
  context: (x) => ({ type: 'message', message: { message: 'a', context: { deep: [{ key: x }] } } }),
  by: (x) => ({ type: 'message', message: { message: 'a', by: x } }),
  note: (x) => ({
    type: 'decision',
    decision: { request: 'r1', digest: 'd', as: 'deny', note: x },
  }),
  reply: (x) => ({ type: 'reply', turn: 1, step: 1, tookMs: 0, reply: { text: x } }),
  arguments: (x) => ({
    type: 'reply',
    reply: { text: '', calls: [{ name: 'a', arguments: JSON.stringify({ x }) }] },
  }),
  result: (x) => ({ type: 'result', result: { ok: true, text: `got ${x}.` } }),
  failure: (x) => ({
    type: 'failure',
    activity: 'runTool',
    input: {},
    error: { type: 'x', message: x },
  }),
  'model error': (x) => ({
    type: 'failure',
    activity: 'callModel',
    input: {},
    error: { type: x, message: '' },
  }),
  document: (x) => ({
    type: 'activity',
    activity: 'retrieveDocuments',
    input: {},
    result: { documents: [{ text: x }] },
  }),
  limits: (x) => ({ type: 'control', name: 'setLimits', input: { by: x } }),
  key: (x) => ({ type: 'control', name: 'x', input: { [x]: 1 } }),
};

describe('a planted secret', () => {
  test.each(Object.entries(PLACES))(
    'in the place "%s" is refused with it, or replaced',
    (_place, make) => {
      learnSecrets({ env: CANARIES, names: CANARY_NAMES });
      for (const value of Object.values(CANARIES)) {
        const planted = changed((run) => (run['facts'] = [{ at: 1, ...make(value) }])) as Recording;
        expect(findSecret(planted)?.path).toMatch(/^runs\[0\]\.facts\[0\]\./);
        const safe = withoutSecretsIn(planted);
        expect(JSON.stringify(safe)).not.toContain(JSON.stringify(value).slice(1, -1));
        expect(findSecret(safe)).toBeNull();
      }
    },
  );

  test.each([
    ['instructions', 'runs[0].definitions[0].instructions'],
    ['tag', 'runs[0].input.tags.team'],
    ["the input of a called agent's run", 'runs[1].input.message'],
  ])('in %s is refused with its place', (_what, path) => {
    learnSecrets({ env: CANARIES, names: CANARY_NAMES });
    for (const value of Object.values(CANARIES)) {
      const planted = changed((run, whole) => {
        const definition = (run['definitions'] as Record<string, unknown>[])[0]!;
        if (path.endsWith('instructions')) definition['instructions'] = `use ${value}`;
        if (path.endsWith('team')) run['input'] = { agent: 'desk', tags: { team: value } };
        if (path.startsWith('runs[1]')) {
          whole['runs'] = [run, { ...run, input: { agent: 'clerk', message: value } }];
        }
      }) as Recording;
      expect(findSecret(planted)?.path).toBe(path);
      expect(findSecret(withoutSecretsIn(planted))).toBeNull();
    }
  });
});

describe('a file that is not a recording', () => {
  const VALUES: readonly unknown[] = [null, 7, 'x', [], {}, true];

  test('names the wrong field, whichever field has whichever type', () => {
    const fields = [
      'id',
      'agent',
      'startedAt',
      'endedAt',
      'input',
      'definitions',
      'facts',
      'messages',
      'spent',
    ];
    let refused = 0;
    for (const field of fields) {
      for (const value of VALUES) {
        try {
          parseRecording(changed((run) => (run[field] = value)));
        } catch (error) {
          refused += 1;
          expect(String(error)).toContain(`recording.runs[0].${field}`);
        }
      }
      expect(() => parseRecording(changed((run) => delete run[field]))).toThrow(`runs[0].${field}`);
    }
    expect(refused).toBeGreaterThan(fields.length * 3);
  });

  type Fact = Record<string, unknown> & { type: string };
  const CHANGES: Readonly<
    Record<string, [(run: Record<string, unknown>, whole: Record<string, unknown>) => void, string]>
  > = {
    'a reply without its text': [
      (run) => delete ofType(run, 'reply')['text'],
      'recording.runs[0].facts[0].reply.text: expected a string, got undefined',
    ],
    'a reply with a large text that is not there': [
      (run) => (ofType(run, 'reply')['blob'] = { sha256: '0'.repeat(64), bytes: 3 }),
      `recording.runs[0].facts[0].reply.blob: expected a text in blobs, got ${'0'.repeat(64)}, which is not there; restore it, or record the run again`,
    ],
    'a result without its text': [
      (run) => delete ofType(run, 'result')['text'],
      'recording.runs[0].facts[1].result.text: expected a string, got undefined',
    ],
    'a result of another kind': [
      (run) => (ofType(run, 'result')['ok'] = 'yes'),
      'recording.runs[0].facts[1].result.ok: expected one of true, false, unknown, not_started, undecided, input_required, got "yes"',
    ],
    'a time after all times': [
      (run) => (run['startedAt'] = 1e308),
      'recording.runs[0].startedAt: expected a Unix time in ms, until the year 9999, got 1e+308',
    ],
    'an option that no run starts with': [
      (run) => (run['input'] = { agent: 'desk', message: 'Go', models: { m: {} } }),
      'recording.runs[0].input: ',
    ],
    'a limit that is no number': [
      (run) => (run['input'] = { agent: 'desk', message: 'Go', limits: { steps: 'many' } }),
      'recording.runs[0].input: limits.steps: expected a positive whole number, or null for none, got "many"',
    ],
    'a message that no run accepts': [
      (run) => (run['facts'] = [{ at: 1, type: 'message', message: { message: 7 } }]),
      'recording.runs[0].facts[0].message: ',
    ],
    'a run twice': [
      (run, whole) => (whole['runs'] = [run, run]),
      'recording.runs[1].id: expected an id of its own, got "memory" again; remove the second run',
    ],
    'a window of 0 tokens': [
      (run) => (run['window'] = 0),
      'recording.runs[0].window: expected a number above 0, got 0',
    ],
    'another version': [
      (_, whole) => (whole['version'] = 2),
      'recording.version: expected 1, got 2; read it with the version of perdure that wrote it, or record the run again with: perdure record memory --out FILE --force',
    ],
  };
  function ofType(run: Record<string, unknown>, type: string): Record<string, unknown> {
    const found = (run['facts'] as Fact[]).find((one) => one.type === type)!;
    return found[type] as Record<string, unknown>;
  }

  test('says how to record the run again, in the file that it has', async () => {
    const file = join(folder, 'older form.json');
    const older = changed((run) => delete run['spent']) as object;
    await writeFile(file, JSON.stringify({ ...older, blobs: [] }));
    await expect(readRecording(file)).rejects.toThrow(`older form.json: recording.runs[0].spent: `);
    await expect(readRecording(file)).rejects.toThrow(
      `; if another version of perdure wrote it, record the run again with: npx perdure record memory --out '${file}' --force`,
    );
  });

  test('proposes no command that would replace a file of another kind', async () => {
    const file = join(folder, 'package.json');
    await writeFile(file, '{"name":"desk"}');
    await expect(readRecording(file)).rejects.toThrow(
      /got undefined; this is not a recording; record a run with: npx perdure record RUN --out FILE$/,
    );
  });

  test.each(Object.entries(CHANGES))('%s is named', (_what, [change, message]) => {
    expect(() => parseRecording(changed(change))).toThrow(message);
  });

  test.each([
    ['{"format":', /case\.json: expected JSON as `record` writes it, got other text \(/],
    ['[]', 'case.json: expected JSON as `record` writes it, got []; record the run again'],
  ])('%j is no recording', async (content, message) => {
    const file = join(folder, 'case.json');
    await writeFile(file, content);
    await expect(readRecording(file)).rejects.toThrow(message);
  });

  test('a device is refused: reading it would not end', async () => {
    await expect(readRecording('/dev/zero')).rejects.toThrow(
      '/dev/zero: expected a recording, got a folder, a pipe, or a device; name the file of a recording; to try a model with all recordings of a folder, use `npx perdure eval /dev/zero --model NAME`',
    );
  });

  test('a byte order mark is ignored, and keys of prototypes change nothing', async () => {
    const file = join(folder, 'case.json');
    const content = JSON.stringify({ ...recording, blobs: [] });
    await writeFile(file, `\uFEFF${content.replace('{', '{"__proto__":{"runs":[]},')}`);
    const read = await readRecording(file);
    expect(read.runs).toEqual(recording.runs);
    expect((await rerun(read)).divergence).toBeNull();
  });

  test('nothing is written outside of the folder of a recording', async () => {
    const written = writeRecording(join(folder, 'out.json'), {
      ...recording,
      blobs: { '../escaped': 'x' },
    });
    await expect(written).rejects.toThrow(
      'recording.blobs: expected the text with the SHA-256 "../escaped", got another one',
    );
    expect(await readdir(folder)).not.toContain('escaped');
  });

  test.each([
    ['a path as the name of a large text', ['../../secret'], /recording\.blobs\[0\]: expected/],
    ['a missing one', ['0'.repeat(64)], /blobs: expected the text in/],
    [
      'one with other words',
      { ['0'.repeat(64)]: 'x' },
      /blobs: expected the text with the SHA-256 "0000/,
    ],
    ['no list', 7, /recording\.blobs: expected/],
  ])('%s', async (_what, blobs, message) => {
    const file = join(folder, 'case.json');
    await writeFile(file, JSON.stringify({ ...recording, blobs }));
    await expect(readRecording(file)).rejects.toThrow(message);
  });
});
