import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { playRun } from '../../src/memory/run-in-memory.js';
import { type Recording, parseRecording, readRecording } from '../../src/recordings/recording.js';
import { recordingOf } from '../../src/recordings/rerun.js';
import { findSecret, withoutSecretsIn } from '../../src/recordings/secrets.js';
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

  test.each([
    ['a path as the name of a large text', ['../../secret'], /recording\.blobs\[0\]: expected/],
    ['a missing one', ['0'.repeat(64)], /blobs: expected the text in/],
    [
      'one with other words',
      { ['0'.repeat(64)]: 'x' },
      /blobs: expected the text with the SHA-256 0000/,
    ],
    ['no list', 7, /recording\.blobs: expected/],
  ])('%s', async (_what, blobs, message) => {
    const file = join(folder, 'case.json');
    await writeFile(file, JSON.stringify({ ...recording, blobs }));
    await expect(readRecording(file)).rejects.toThrow(message);
  });
});
