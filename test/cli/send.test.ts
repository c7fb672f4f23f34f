import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { commandLine, type CommandEnd } from '../support/command.js';

const address = inject('temporalAddress');
const command = await commandLine();
let stub: Stub;

beforeAll(async () => {
  stub = await startStub();
});
afterAll(async () => {
  await stub.close();
  stub.assertConsumed();
});

/** Starts a command on a queue without another worker. */
function lonelyPlace() {
  const place = ['--address', address, '--task-queue', `lonely-${randomUUID()}`];
  const env = { OPENAI_BASE_URL: stub.baseUrl };
  return {
    perdure: (...args: readonly string[]) => command.here([...args, ...place], { env }),
  };
}

function json({ stdout }: CommandEnd): unknown {
  expect(stdout.trimEnd().split('\n')).toHaveLength(1);
  return JSON.parse(stdout);
}

describe('an open run without another worker', () => {
  test('is started, sent a message, read, and closed, each by its own command', async () => {
    const { perdure } = lonelyPlace();
    stub.scriptFor('My name is Ada', replyText('Hello Ada.'), replyText('Ada.'));
    const id = 'open-ada';
    const begun = await perdure('run', 'files', 'My name is Ada', '--open', '--id', id).ended;
    expect({ code: begun.code, stdout: begun.stdout }).toEqual({ code: 0, stdout: 'Hello Ada.\n' });
    expect(begun.stderr).toMatch(/^turn 1 completed \(answer\) · 1 step · 0 calls/m);
    expect(begun.stderr).toMatch(
      /^Send it the next message with: .* send open-ada MESSAGE --address/m,
    );
    expect(begun.stderr).toMatch(/^End it with: .* close open-ada --address/m);
    // An idle run needs no worker, and the commands that continue it host one.
    expect(begun.stderr).not.toContain('worker');

    // A turn that has ended is shown as if it had been followed.
    const waiting = await perdure('attach', id).ended;
    expect({ code: waiting.code, stdout: waiting.stdout }).toEqual({
      code: 0,
      stdout: 'Hello Ada.\n',
    });
    expect(waiting.stderr).toMatch(/^turn 1 completed \(answer\) · 1 step · 0 calls/m);
    expect(waiting.stderr).toMatch(
      /^Run open-ada waits for a message\.\nSend it the next message with: .* send open-ada MESSAGE --address.*\nEnd it with: /m,
    );
    const asData = await perdure('attach', id, '--json').ended;
    expect(json(asData)).toMatchObject({ id, turn: 1, status: 'completed', answer: 'Hello Ada.' });
    expect(asData.code).toBe(0);

    const sent = await perdure('send', id, 'What is', 'it?', '--message-id', 'q1', '--json').ended;
    expect(json(sent)).toMatchObject({
      id,
      turn: 2,
      messageId: 'q1',
      status: 'completed',
      reason: 'answer',
      answer: 'Ada.',
      steps: 1,
    });
    for (const rest of [[], ['--detach']]) {
      const other = await perdure('send', id, 'Is it?', '--message-id', 'q1', ...rest).ended;
      expect(other.stderr).toContain(
        '--message-id: the run has received another message with this id, and this one was not delivered; give it an id of its own',
      );
      expect(other.code).not.toBe(0);
    }
    expect(sent.stderr).toMatch(/^Message accepted for turn 2\.$/m);
    expect(sent.stderr).toMatch(/^turn 2 · What is it\?$/m);
    expect(sent.stderr).not.toContain('My name');
    expect(sent.code).toBe(0);

    const again = await perdure('send', id, 'What is it?', '--message-id', 'q1').ended;
    expect({ code: again.code, stdout: again.stdout }).toEqual({ code: 0, stdout: 'Ada.\n' });

    const status = await perdure('status', id, '--json').ended;
    expect(json(status)).toMatchObject({ status: 'waiting_message', turn: 2, queued: 0 });
    const limited = await perdure('limits', id, '--limit', 'steps=9', '--json').ended;
    expect(json(limited)).toMatchObject({ id, limits: { turn: { steps: 9 } } });
    const closed = await perdure('close', id, '--json').ended;
    expect(json(closed)).toEqual({ id, closing: true, ended: true, wasClosing: false });
    expect(closed.code).toBe(0);
    const late = await perdure('send', id, 'More?').ended;
    expect(late.stderr).toMatch(/run open-ada has ended: completed \(closed\)/);
    expect(late.code).toBe(1);
    const over = await perdure('attach', id, '--json').ended;
    expect(json(over)).toMatchObject({ status: 'completed', reason: 'closed', answer: 'Ada.' });
  }, 120_000);

  test('exits with the code of the followed turn, and the run stays open', async () => {
    const { perdure } = lonelyPlace();
    stub.scriptFor('Be rude', replyText('', { finish: 'content_filter' }));
    // A message that the provider refused is left out of later prompts.
    stub.scriptFor('[A message was here. The provider', replyText('sorry'));
    const begun = await perdure('run', 'files', 'Be rude', '--open', '--id', 'open-rude', '--json')
      .ended;
    expect(json(begun)).toMatchObject({ id: 'open-rude', status: 'failed', reason: 'filtered' });
    expect(begun.code).toBe(1);
    const shown = await perdure('attach', 'open-rude', '--json').ended;
    expect({ code: shown.code, end: json(shown) }).toEqual({ code: 1, end: json(begun) });
    const next = await perdure('send', 'open-rude', 'Be kind').ended;
    expect({ code: next.code, stdout: next.stdout }).toEqual({ code: 0, stdout: 'sorry\n' });
    await perdure('cancel', 'open-rude', '--detach').ended;
  });

  test('is continued by attach after its command was interrupted', async () => {
    const { perdure } = lonelyPlace();
    stub.scriptFor(
      'Take your time',
      replyText('one', { holdBeforeHeaders: 'open-held' }),
      replyText('one at last'),
    );
    const begun = perdure('run', 'files', 'Take your time', '--open', '--id', 'open-held');
    await begun.until(stub.barrier('open-held').reached);
    begun.interrupt();
    const left = await begun.ended;
    expect(left.code).toBe(130);
    expect(left.stderr).toContain('attach open-held');
    const end = await perdure('attach', 'open-held').ended;
    expect({ code: end.code, stdout: end.stdout }).toEqual({ code: 0, stdout: 'one at last\n' });
    await perdure('cancel', 'open-held', '--detach').ended;
  });

  test('accepts a message during a turn with --steer', async () => {
    const { perdure } = lonelyPlace();
    stub.scriptFor(
      'Count the files',
      replyCalls([{ name: 'list_files', arguments: { path: '.' } }], {
        holdBeforeHeaders: 'open-steered',
      }),
      replyText('counted, briefly'),
    );
    // The host may or may not send this request before it ends.
    stub.answer(({ text }) =>
      text.includes('And now?') ? replyText('now', { holdBeforeHeaders: 'open-next' }) : undefined,
    );
    const id = 'open-steered';
    const host = perdure('run', 'files', 'Count the files', '--open', '--id', id);
    await host.until(stub.barrier('open-steered').reached);
    const sent = await perdure('send', id, 'Be brief', '--steer', '--detach', '--json').ended;
    expect(json(sent)).toMatchObject({ id, turn: 1, messageId: expect.any(String) });
    expect(sent.code).toBe(0);
    const queued = await perdure('send', id, 'And now?', '--detach', '--message-id', 'n').ended;
    expect(queued.stderr).toContain('Message accepted for turn 2.');
    stub.barrier('open-steered').release();
    const end = await host.ended;
    expect(end.stderr).toMatch(/^joins turn 1 · Be brief$/m);
    expect(end.stderr).not.toContain('And now?');
    expect(end.stderr).toMatch(/continues with turn 2 once a worker runs again; .* attach/);
    expect({ code: end.code, stdout: end.stdout }).toEqual({
      code: 0,
      stdout: 'counted, briefly\n',
    });
    stub.barrier('open-next').release();
    const next = await perdure('attach', id).ended;
    expect({ code: next.code, stdout: next.stdout }).toEqual({ code: 0, stdout: 'now\n' });
    await perdure('cancel', id, '--detach').ended;
  });
});

describe('an invalid message', () => {
  test.each([
    ['send x', 'message: expected a message after the id of the run, or --prompt; got none'],
    ['send x hello --message-id ', '--message-id: expected a string of 1–200 characters, got ""'],
    ['send x hello --pinned', 'Did you mean --pin'],
    [
      `send x hello --message-id ${'i'.repeat(201)}`,
      '--message-id: expected a string of 1–200 characters, got "iii',
    ],
    [
      `send x ${'é'.repeat(9_000)} --pin`,
      'expected at most 16384 bytes of a pinned message, got 18000',
    ],
  ])('%.40s: exits with 2 and the reason', async (line, why) => {
    const end = await command.here([...line.split(' '), '--json']).ended;
    expect(end.stderr).toContain(why);
    expect(end.code).toBe(2);
  });

  test('exits with 2 if it is empty, and with 1 for an unknown run', async () => {
    const { perdure } = lonelyPlace();
    const empty = await perdure('send', 'nobody', ' ').ended;
    expect(empty.stderr).toContain('message: expected text, got an empty string');
    expect(empty.code).toBe(2);
    const nobody = await perdure('send', 'nobody', 'hello').ended;
    expect(nobody.stderr).toMatch(/there is no run "nobody"; list runs with: .* list/);
    expect(nobody.code).toBe(1);
  });

  test('exits with 1 for a run that is not open, and names --steer', async () => {
    const { perdure } = lonelyPlace();
    stub.scriptFor('Not open', replyText('done', { holdBeforeHeaders: 'not-open' }));
    const host = perdure('run', 'files', 'Not open', '--id', 'not-open');
    await host.until(stub.barrier('not-open').reached);
    const refused = await perdure('send', 'not-open', 'hello').ended;
    expect(refused.stderr).toContain(
      'this run ends with its turn; send with --steer to join it, or start one with --open',
    );
    expect(refused.code).toBe(1);
    stub.barrier('not-open').release();
    expect((await host.ended).code).toBe(0);
    const nobody = await perdure('send', 'not-open', 'hello', '--detach').ended;
    expect(nobody.stderr).toContain('has ended: completed (answer)');
    expect(nobody.code).toBe(1);
  });
});
