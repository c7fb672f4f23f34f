import type { WorkflowHandle } from '@temporalio/client';
import stringWidth from 'string-width';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { osUser } from '../../src/cli/input/option-parsers.js';
import type { Rule } from '../../src/core/definition/rules.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { createCalendar } from '../support/calendar.js';
import { createPayer } from '../support/payer.js';
import { createDesk, type Desk } from '../support/requests.js';
import { atTerminal, hasTerminal, type Terminal, textOf } from '../support/terminal.js';

let desk: Desk;
beforeAll(async () => {
  desk = await createDesk();
});
beforeEach(() => desk.reset());
afterAll(async () => await desk.close());

const { pay, payer } = createPayer(() => desk);

/** Follows a run in a pseudo-terminal. */
async function attached(run: string): Promise<Terminal> {
  return await atTerminal(desk.rig, 'attach', run, '--task-queue', desk.rig.taskQueue);
}

test.skipIf(!hasTerminal)(
  'a plan of ten actions is on one screen, and takes the words that it offers',
  async () => {
    const { assistant } = createCalendar(() => desk);
    await desk.work([assistant()]);
    const actions = Array.from({ length: 10 }, (_, at) => {
      const id = `a${at + 1}`;
      return at % 3 === 2
        ? { id, tool: 'delete_event', arguments: { id: `e${at}` } }
        : { id, tool: 'add_event', arguments: { title: `meeting ${at}` } };
    });
    desk.script([JSON.stringify({ actions }), 'All done.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'plan my day' });
    const terminal = await attached(handle.workflowId);
    const question = 'yes / no / some a1 / nothing / edit … / full / later?';
    await terminal.isShown(question);
    const text = textOf(terminal);
    const screen = text
      .slice(text.indexOf('request r1 of run'), text.indexOf(question))
      .split('\r\n');
    expect(screen.length).toBeLessThanOrEqual(40);
    for (const line of screen) expect(stringWidth(line)).toBeLessThanOrEqual(80);
    for (const { id } of actions) {
      expect(screen.filter((line) => new RegExp(`^[ !] ${id} `).test(line))).toHaveLength(1);
    }
    expect(screen.join('\n')).toMatch(/^! a3 +delete_event +keyed +delete event e2$/m);
    terminal.type('some a99');
    await terminal.isShown('the plan has no action "a99". Type one of: yes / no');
    await terminal.isShown('(the actions are a1, a2, a3');
    terminal.type('some a1 a3');
    await terminal.isShown('Decision on request r1: some');
    const { outcome } = await desk.end(handle);
    expect(outcome.answer).toBe('All done.');
    expect([...desk.done].toSorted()).toEqual(['add meeting 0', 'delete e2']);
    await terminal.isShown('All done.');
    expect(terminal.shown()).not.toContain('limit reached');
    terminal.close();
    // The calls of the plan are no messages.
    const calls = await atTerminal(desk.rig, 'transcript', handle.workflowId, '--calls');
    expect(await calls.exit()).toBe(0);
    expect(textOf(calls)).toMatch(/^action a1 · add "meeting 0" · done · /m);
    expect(textOf(calls)).toMatch(/^action a3 · delete event e2 · done · /m);
    expect(textOf(calls)).toMatch(
      /are not in the messages. See their results with: .* graph --run=run-\S+ --json/s,
    );
  },
);

/** A denial of the open request of a run. */
async function decisionOf(handle: WorkflowHandle, by: string): Promise<object> {
  const [request] = (await handle.query<RunStatus>('status')).pending;
  return { request: request?.id, digest: request?.digest, as: 'deny', by };
}

test.skipIf(!hasTerminal)(
  'a person at a terminal who may not decide is shown the commands, and not asked',
  async () => {
    const rules = [{ tool: 'pay', then: 'ask', deciders: 'not_requester' }] as const;
    await desk.work([
      defineAgent({ name: 'guarded', instructions: 'x', model: 'script', tools: [pay], rules }),
    ]);
    desk.script([{ pay: { to: 'ann' } }, 'Done.']);
    const { handle } = await desk.asked({ agent: 'guarded', message: 'pay', by: osUser() });
    const terminal = await attached(handle.workflowId);
    await terminal.isShown('The run waits for a person who may decide.');
    expect(terminal.shown()).toContain('--by NAME');
    expect(terminal.shown()).not.toContain('later?');
    const bob = await atTerminal(desk.rig, 'attach', handle.workflowId, '--by', 'bob');
    await bob.isShown('/ full / later?');
    await handle.executeUpdate('resolve', { args: [await decisionOf(handle, 'bob')] });
    await terminal.isShown('Done.');
    terminal.close();
    bob.close();
  },
);

test.skipIf(!hasTerminal)(
  'a person who has given a name at a terminal decides under that name, and not as another',
  async () => {
    const rules = [{ tool: 'pay', then: 'ask', deciders: 'not_requester' }] as const;
    const parts = { instructions: 'x', model: 'script', tools: [pay] };
    await desk.work([defineAgent({ name: 'guarded', ...parts, rules }), payer()]);
    desk.script([{ pay: { to: 'ann' } }, 'Done.', { pay: { to: 'ann' } }, 'Paid.']);
    const guarded = await desk.rig.start({ agent: 'guarded', open: true });
    const asked = await atTerminal(desk.rig, 'send', guarded.workflowId, 'pay', '--by', 'ann');
    await asked.isShown('The run waits for a person who may decide.');
    await guarded.executeUpdate('resolve', { args: [await decisionOf(guarded, 'bob')] });
    await asked.isShown('Done.');
    asked.close();
    const free = await desk.rig.start({ agent: 'payer', open: true });
    const terminal = await atTerminal(desk.rig, 'send', free.workflowId, 'pay', '--by', 'ann');
    await terminal.isShown('/ full / later?');
    terminal.type('yes');
    await terminal.isShown('Paid.');
    const { decisions } = await free.query<RunStatus>('status');
    expect(decisions?.at(-1)).toMatchObject({ as: 'approve', by: 'ann' });
    terminal.close();
  },
);

test.skipIf(!hasTerminal)(
  'a person at a terminal is prompted, and decides by typing a word',
  async () => {
    await desk.work([payer()]);
    const to = 'ann and everyone who works in the northern office';
    desk.script([{ pay: { to } }, 'Done.']);
    const { handle } = await desk.asked({ agent: 'payer', message: 'pay' });
    const terminal = await attached(handle.workflowId);
    await terminal.isShown('yes / no / edit / answer / full / later?');
    expect(terminal.shown()).toMatch(/to.*ann/);
    // Its line of progress ends between two words, within the 80 columns.
    expect(textOf(terminal)).toMatch(/request r1 \(approval\): pay [^\r\n]{1,53} \r?\n {2}\w/);
    terminal.type('deny');
    await terminal.isShown('Reason (optional):');
    terminal.type('x'.repeat(2_001));
    await terminal.isShown('note: expected at most 2000 characters');
    terminal.type('nonsense');
    await terminal.isShown('Type one of: yes / no');
    terminal.type('edit');
    await terminal.isShown('All new arguments as JSON:');
    terminal.type('[]');
    await terminal.isShown('expected a JSON object with all arguments; now: {"to":"ann and every');
    terminal.type('{"from":}');
    await terminal.isShown('(Unexpected token');
    // A line that comes with the one before it is not lost.
    terminal.type('[1]\r[2]');
    await terminal.isShown('All new arguments as JSON: [2]');
    await terminal.isShown('An empty line leads back to the choices.');
    const seen = (text: string): number => textOf(terminal).split(text).length - 1;
    const before = seen('/ full / later?');
    terminal.type('');
    await expect.poll(() => seen('/ full / later?')).toBe(before + 1);
    terminal.type('edit {"from":}');
    await expect.poll(() => seen('/ full / later?')).toBe(before + 2);
    expect(seen('now: {"to":"ann and every')).toBe(5);
    // In one line; the run asks again after a worker has refused the arguments.
    terminal.type('edit {"from":"ann"}');
    await terminal.isShown('The decision was not accepted: arguments:');
    terminal.type('approve');
    await terminal.isShown('Decision on request r1: approve');
    const { outcome, projection } = await desk.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.' });
    expect(desk.done).toEqual([`pay ${to}`]);
    expect(projection.state?.decisions).toMatchObject([
      { as: 'edit', refused: expect.stringContaining('to: missing') },
      { as: 'approve', by: osUser() },
    ]);
    terminal.close();
  },
);

test.skipIf(!hasTerminal)(
  'a person at a terminal approves nothing of which a part is not shown, and denies it in one line',
  async () => {
    await desk.work([payer()]);
    desk.script([{ pay: { to: 'a'.repeat(500) } }, { pay: { to: 'b'.repeat(500) } }, 'Done.']);
    const { handle } = await desk.asked({ agent: 'payer', message: 'pay' });
    const terminal = await attached(handle.workflowId);
    await terminal.isShown('TRUNCATED: before you decide, read it in full; type: full');
    terminal.type('yes');
    const asked = (): number => terminal.shown().split('/ full / later?').length - 1;
    const refused = (): number => terminal.shown().split('Some of it is not shown yet').length - 1;
    await expect.poll(asked).toBe(2);
    expect([refused(), desk.done]).toEqual([1, []]);
    // A decision that is refused shows nothing more of it.
    terminal.type('edit');
    await terminal.isShown('All new arguments as JSON:');
    terminal.type('{"from":"ann"}');
    await terminal.isShown('The decision was not accepted: arguments:');
    await expect.poll(asked).toBe(3);
    terminal.type('yes');
    await expect.poll(asked).toBe(4);
    expect([refused(), desk.done]).toEqual([2, []]);
    terminal.type('full');
    await expect.poll(asked).toBe(5);
    terminal.type('yes');
    await terminal.isShown('Decision on request r1: approve');
    await terminal.isShown('request r2 of run');
    terminal.type('no, because Ben has left');
    await terminal.isShown('Decision on request r2: deny');
    await terminal.isShown('Done.');
    expect(desk.done).toEqual([`pay ${'a'.repeat(500)}`]);
    const { projection } = await desk.end(handle);
    expect(projection.state?.decisions?.at(-1)).toMatchObject({ as: 'deny' });
    terminal.close();
  },
);

describe.skipIf(!hasTerminal)('a person at a terminal whose request ends elsewhere', () => {
  const question = 'yes / no / edit / answer / full / later?';
  /** Starts a run that asks, and waits until the terminal asks its person. */
  async function prompted(expires?: Rule['expires']) {
    const agent = payer(expires);
    // The run looks for a worker with its agent among all workers, which takes longer, the more lack it.
    await desk.rig.stopWorkers();
    await desk.work([agent]);
    desk.script([{ pay: { to: 'ann' } }, 'Done.']);
    const { handle } = await desk.asked({ agent: agent.name, message: 'pay' });
    const terminal = await attached(handle.workflowId);
    onTestFinished(() => terminal.close());
    await terminal.isShown(question);
    return { handle, terminal };
  }

  test('sees who has decided, and then the answer', async () => {
    const { handle, terminal } = await prompted();
    await desk.decide(handle, { as: 'approve', by: 'bob' });
    await terminal.isShown('Request r1 was decided by bob (approve) at ');
    await terminal.isShown('Done.');
    expect(await terminal.exit()).toBe(0);
    expect(terminal.shown()).not.toContain('Decide later');
    expect(desk.done).toEqual(['pay ann']);
  });

  test('sees that it has expired', async () => {
    const { handle, terminal } = await prompted('15 seconds');
    await terminal.isShown('Request r1 expired at ');
    await terminal.isShown('Done.');
    expect(await terminal.exit()).toBe(0);
    const status = await atTerminal(desk.rig, 'status', handle.workflowId);
    await status.isShown('expired r1');
    expect(await status.exit()).toBe(0);
    expect(status.shown()).toContain('no decision came within its time limit');
    expect(status.shown()).not.toContain('caller');
  });

  test('sees that the run is canceled', async () => {
    const { handle, terminal } = await prompted();
    await handle.cancel();
    await terminal.isShown('Request r1 is no longer open.');
    expect(await terminal.exit()).toBe(7);
    expect(terminal.shown()).toContain('cancelled');
  });
});

describe.skipIf(!hasTerminal)('a person at a terminal who presses', () => {
  test('Ctrl-D at a request decides later', async () => {
    await desk.work([payer()]);
    desk.script([{ pay: { to: 'ann' } }, 'Done.']);
    const { handle } = await desk.asked({ agent: 'payer', message: 'pay' });
    const terminal = await attached(handle.workflowId);
    onTestFinished(() => terminal.close());
    await terminal.isShown('later?');
    terminal.press('Ctrl-D');
    await terminal.isShown('The run waits. Decide later with the commands shown by:');
    await desk.decide(handle, { as: 'approve', by: 'bob' });
    await terminal.isShown('Done.');
    expect(await terminal.exit()).toBe(0);
  });

  test.each([
    ['Ctrl-D', 0],
    ['Ctrl-C', 130],
  ] as const)('%s where a command asks whether to erase erases nothing', async (key, code) => {
    await desk.work([payer()]);
    desk.script(['Done.']);
    const handle = await desk.rig.start({ agent: 'payer', message: 'say' });
    await desk.end(handle);
    const terminal = await atTerminal(desk.rig, 'erase', handle.workflowId);
    onTestFinished(() => terminal.close());
    await terminal.isShown('It cannot be undone. yes / no');
    terminal.type('perhaps');
    await terminal.isShown('Expected yes or no, got "perhaps".');
    terminal.press(key);
    await terminal.isShown('Nothing was erased.');
    expect(await terminal.exit()).toBe(code);
    expect((await handle.describe()).status.name).toBe('COMPLETED');
  });
});
