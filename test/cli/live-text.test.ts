import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { palette } from '../../src/cli/format/format.js';
import { createLiveText } from '../../src/cli/run-view/live-text.js';
import type { StreamEvent } from '../../src/live/stream.js';
import { replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { builtProgram } from '../support/built-program.js';
import { NO_THREAD } from '../support/child-script.js';
import { commandLine } from '../support/command.js';

type Live = Exclude<StreamEvent, { offset: string }>;

const place = { turn: 1, step: 1, attempt: 1, position: '' };
const delta = (kind: 'text' | 'reasoning', text: string): Live => ({
  type: 'delta',
  ...place,
  offset: 0,
  kind,
  text,
});
const callDelta = (text: string, rest: { index: number; name?: string }): Live => ({
  type: 'delta',
  ...place,
  offset: 0,
  kind: 'call',
  text,
  ...rest,
});
const paint = palette(false);

/** Sets the clipboard, clears the screen, sets the title, hides a link, reverses the text. */
const HOSTILE =
  'a\u001b]52;c;ZXZpbA==\u0007b\u001b[2Jc\u001b]0;title\u0007d\re\u202ef\u001b]8;;http://x\u001b\\g\u009b31mh';
// oxlint-disable-next-line no-control-regex -- control characters are the point
const OBEYED = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

describe('a reply in progress', () => {
  test('is shown as its last lines, marked, until it is recorded or discarded', () => {
    const liveText = createLiveText(paint);
    for (const text of ['one\ntwo\nth', 'ree\nfour\nfive\nsix\nseven ', 'and more']) {
      expect(liveText.add(delta('text', text))).toBe(true);
    }
    expect(liveText.lines(80)).toEqual([
      '│ two',
      '│ three',
      '│ four',
      '│ five',
      '│ six',
      '│ seven and more',
    ]);
    expect(liveText.add({ type: 'run-paused', at: 0, offset: '', position: '' })).toBe(false);
    expect(liveText.lines(80)).toHaveLength(6);
    liveText.add({ type: 'superseded', ...place });
    expect(liveText.lines(80)).toEqual([]);
    liveText.add(delta('text', 'again'));
    liveText.add({ type: 'gap', ...place, offset: 5, until: 9 });
    liveText.add(delta('text', 'later'));
    expect(liveText.lines(80)).toEqual(['│ again … later']);
    liveText.add({ type: 'wait-begun', for: 'message', at: 0, offset: '', position: '' });
    expect(liveText.lines(80)).toEqual([]);
  });

  test('is shown with its node, and one line for each of several items', () => {
    const liveText = createLiveText(paint);
    const node = (
      text: string,
      rest: { item?: number; reply?: number; offset?: number },
    ): Live => ({
      type: 'node-delta',
      turn: 1,
      node: 'sort',
      attempt: 1,
      reply: 1,
      offset: 0,
      kind: 'text',
      text,
      position: '',
      ...rest,
    });
    expect(liveText.add(node('a lett', {}))).toBe(true);
    liveText.add(node('er', { offset: 6 }));
    expect(liveText.lines(80)).toEqual(['│ node sort', '│ a letter']);
    const {
      kind: _,
      offset: _offset,
      text: _text,
      ...of
    } = node('', {}) as never as Record<string, unknown>;
    expect(liveText.add({ ...of, type: 'node-superseded' } as never)).toBe(true);
    expect(liveText.lines(80)).toEqual([]);
    liveText.add(node('a bill', { reply: 2 }));
    // What another attempt wrote before does not come back.
    expect(liveText.add(node('a letter', {}))).toBe(false);
    expect(liveText.lines(80)).toEqual(['│ node sort', '│ a bill']);
    liveText.add({
      type: 'node-ended',
      node: 'sort',
      exit: 'done',
      ms: 1,
      at: 0,
      offset: '',
      position: '',
    });
    expect(liveText.lines(80)).toEqual([]);
    for (const item of [1, 2]) liveText.add(node(`one\ntwo ${item}`, { item }));
    expect(liveText.lines(80)).toEqual(['│ item 1: two 1', '│ item 2: two 2']);
    const usage = {} as never;
    const at = { at: 0, offset: '', position: '' };
    liveText.add({
      type: 'node-replied',
      node: 'sort',
      item: 1,
      model: 'm',
      text: '',
      usage,
      ...at,
    });
    expect(liveText.lines(80)).toEqual(['│ node sort, item 2', '│ one', '│ two 2']);
  });

  test('is wrapped between words', () => {
    const liveText = createLiveText(paint);
    liveText.add(delta('text', 'It calls the tool that you name, with the arguments of it.'));
    expect(liveText.lines(26)).toEqual([
      '│ It calls the tool that',
      '│ you name, with the',
      '│ arguments of it.',
    ]);
  });

  test('is wrapped at the width of the screen, between code points', () => {
    const liveText = createLiveText(paint);
    liveText.add(delta('text', '🦊'.repeat(30)));
    expect(liveText.lines(23)).toEqual([
      '│ '.concat('🦊'.repeat(10)),
      '│ '.concat('🦊'.repeat(10)),
      '│ '.concat('🦊'.repeat(10)),
    ]);
  });

  test('shows the reasoning until text arrives, and the call in progress', () => {
    const liveText = createLiveText(paint);
    liveText.add(delta('reasoning', 'let me see'));
    expect(liveText.lines(80)).toEqual(['│ let me see']);
    liveText.add(delta('text', 'I look.'));
    liveText.add(callDelta('', { index: 0, name: 'read_file' }));
    liveText.add(callDelta('{"path":"sr', { index: 0 }));
    liveText.add(callDelta('c/a.ts"}', { index: 0 }));
    expect(liveText.lines(80)).toEqual(['│ I look.', '│ read_file {"path":"src/a.ts"}']);
    expect(liveText.lines(30)[1]).toMatch(/^│ read_file … .*a\.ts"}$/);
  });

  test('never controls the terminal, however it is split', () => {
    const check = (
      cuts: readonly number[],
      kind: 'text' | 'reasoning' | 'call',
      columns: number,
    ): void => {
      const liveText = createLiveText(paint);
      let from = 0;
      for (const to of [...cuts.toSorted((one, other) => one - other), HOSTILE.length]) {
        const text = HOSTILE.slice(from, to);
        liveText.add(
          kind === 'call' ? callDelta(text, { index: 0, name: text }) : delta(kind, text),
        );
        from = to;
        for (const line of liveText.lines(columns)) expect(line).not.toMatch(OBEYED);
      }
    };
    const cut = fc.array(fc.nat(HOSTILE.length), { maxLength: 8 });
    const kind = fc.constantFrom('text' as const, 'reasoning' as const, 'call' as const);
    fc.assert(fc.property(cut, kind, fc.integer({ min: 1, max: 100 }), check));
  });
});

const SCRIPT = '/usr/bin/script';

describe.skipIf(!existsSync(SCRIPT))(
  `on a terminal, which ${SCRIPT} of util-linux simulates`,
  () => {
    let stub: Stub;
    let folder: string;
    beforeAll(async () => {
      stub = await startStub();
      ({ folder } = await commandLine());
    });
    afterAll(() => stub.close());

    test('run shows the reply in progress, which never controls the terminal', async () => {
      const text = `Look: ${HOSTILE} and so on`;
      const sse = { charactersPerEvent: 3 };
      stub.script(replyText(text, { sse, holdAfterEvent: { event: 35, barrier: 'middle' } }));
      const args = `run files Talk --address ${inject('temporalAddress')} --task-queue tty-${process.pid}`;
      const child = spawn(
        SCRIPT,
        [
          '-qfec',
          `stty cols 100 rows 40; ${process.execPath} ${await builtProgram()} ${args}`,
          '/dev/null',
        ],
        {
          cwd: folder,
          env: {
            ...NO_THREAD,
            PATH: process.env['PATH'],
            PERDURE_HOME: join(folder, 'home'),
            OPENAI_BASE_URL: stub.baseUrl,
            TERM: 'xterm',
            PERDURE_SERVER: 'own',
          },
          stdio: ['pipe', 'pipe', 'inherit'],
        },
      );
      let shown = '';
      const seen = new Promise<void>((resolve) => {
        child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
          shown += chunk;
          if (shown.includes('Look: a\\u001b]52;c;')) resolve();
        });
      });
      const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
      await Promise.race([
        seen,
        ended.then((code) => {
          throw new Error(`it ended with ${code}: ${shown}`);
        }),
      ]);
      stub.barrier('middle').release();
      expect(await ended).toBe(0);
      expect(shown).toContain('and so on');
      for (const sequence of ['\u001b]', '\u001b[2J', '\u009b', '\u202e', '\u0007']) {
        expect(shown).not.toContain(sequence);
      }
    });
  },
);
