import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { evaluation } from '../../src/cli/commands/eval.js';
import { rerun as rerunCommand } from '../../src/cli/commands/rerun.js';
import { KEYS_VARIABLE } from '../../src/encryption/keyring.js';
import { playRun } from '../../src/memory/run-in-memory.js';
import type { Recording } from '../../src/recordings/recording.js';
import { recordingOf } from '../../src/recordings/rerun.js';
import {
  evaluate,
  readRecording,
  replyText,
  scriptedModel,
  writeRecording,
} from '../../src/testing.js';
import { runInProcess } from '../support/in-process.js';
import { useSourceBundle } from '../support/memory.js';

const key = (): string => randomBytes(32).toString('base64');
const [cases, other] = [key(), key()];
const encryption = { keys: { cases }, current: 'cases' };
const desk = defineAgent({ name: 'desk', instructions: 'Help.', model: 'm' });
const CONFIG = `
import { defineAgent, defineConfig } from 'perdure';
import { replyText, scriptedModel } from 'perdure/testing';
const desk = defineAgent({ name: 'desk', instructions: 'Help.', model: 'm' });
const m = scriptedModel([replyText('An aubergine.'), replyText('An aubergine.')]);
export default defineConfig({ agents: [desk], models: { m } });
`;

let folder: string;
let file: string;
let recording: Recording;
beforeAll(async () => {
  await useSourceBundle();
  folder = await mkdtemp(join(tmpdir(), 'perdure-sealed-'));
  file = join(folder, 'desk.json');
  const model = scriptedModel([replyText('An aubergine.')]);
  recording = recordingOf(await playRun(desk, { message: 'What is it?', model }), { blobs: {} });
  await writeRecording(file, recording, { encryption });
  await writeFile(join(folder, 'perdure.config.mjs'), CONFIG);
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));
afterEach(() => vi.unstubAllEnvs());

test('the same recording and key give the same file, and another key another one', async () => {
  const sealed = await readFile(file, 'utf8');
  expect(sealed).not.toContain('aubergine');
  expect(JSON.parse(sealed)).toEqual({
    format: 'perdure/recording',
    version: 1,
    key: 'cases',
    sealed: expect.stringMatching(/^[\w+/]+=*$/) as string,
  });
  const again = join(folder, 'again.json');
  await writeRecording(again, recording, { encryption });
  expect(await readFile(again, 'utf8')).toBe(sealed);
  const both = { keys: { cases, other }, current: 'cases' };
  await writeRecording(again, recording, { encryption: both, key: 'other' });
  expect(JSON.parse(await readFile(again, 'utf8'))).toMatchObject({ key: 'other' });
  await rm(again);
});

test('keys come from the variable, for writing and for reading', async () => {
  const place = join(folder, 'variable.json');
  vi.stubEnv(KEYS_VARIABLE, `cases:${cases}`);
  await writeRecording(place, recording);
  expect(await readFile(place, 'utf8')).toBe(await readFile(file, 'utf8'));
  expect(JSON.stringify(await readRecording(place))).toBe(JSON.stringify(recording));
  await writeRecording(place, recording, { clear: true });
  expect(await readFile(place, 'utf8')).toContain('aubergine');
  await rm(place);
});

test('a recording that was changed, or cut, is refused by name', async () => {
  const place = join(folder, 'changed.json');
  const sealed = JSON.parse(await readFile(file, 'utf8')) as { sealed: string };
  for (const [change, message] of [
    [{ sealed: sealed.sealed.replace(/.{8}$/, 'AAAAAAA=') }, /key "cases": it was changed/],
    [{ sealed: '' }, /key "cases": it was changed/],
    [{ key: 7 }, /changed\.json: recording\.key: expected a string, got 7/],
    [{ version: 2 }, /changed\.json: recording\.version: expected 1, got 2/],
  ] as const) {
    await writeFile(place, JSON.stringify({ ...sealed, ...change }));
    await expect(readRecording(place, { encryption })).rejects.toThrow(message);
  }
  await rm(place);
});

test('rerun and eval read both forms, and name the key that is missing', async () => {
  const clear = join(folder, 'clear.json');
  await writeRecording(clear, recording, { clear: true });
  const config = join(folder, 'perdure.config.mjs');
  const run = async (keys: string) =>
    await runInProcess(
      rerunCommand,
      { file: [file, clear] },
      { home: folder, config, env: { [KEYS_VARIABLE]: keys } },
    );
  const same = await run(`cases:${cases}`);
  expect(same).toMatchObject({ code: 0, stdout: `${file}: same\n${clear}: same` });
  const missing = 'is encrypted with key "cases", and';
  expect((await run(`k1:${other}`)).stdout).toMatch(
    `${file}: error: the recording cannot be read: it ${missing} this process has only "k1"`,
  );
  const none = await run('');
  expect(none.code).toBe(1);
  expect(none.stdout).toContain(
    `${missing} this process has no key; add the key to ${KEYS_VARIABLE}`,
  );
  expect(none.stdout).toContain(`${clear}: same`);
  vi.stubEnv(KEYS_VARIABLE, `cases:${cases}`);
  const place = { home: folder, config, json: true };
  const { stdout } = await runInProcess(evaluation, { folder, model: 'm' }, place);
  expect(JSON.parse(stdout)).toMatchObject({ passed: true });
  vi.unstubAllEnvs();

  const model = () => scriptedModel([replyText('An aubergine.')]);
  const read = await evaluate(folder, { model, encryption });
  expect(read.cases.map(({ recorded }) => recorded?.answer)).toEqual([
    'An aubergine.',
    'An aubergine.',
  ]);
  const unread = await evaluate(folder, { model });
  expect(unread.cases.map(({ candidates }) => candidates[0]?.error)).toEqual([
    null,
    expect.stringContaining(missing) as string,
  ]);
});
