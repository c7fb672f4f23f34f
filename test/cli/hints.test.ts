import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runnableTextElsewhere } from '../../src/cli/reports/next-command.js';
import { osUser } from '../../src/cli/input/option-parsers.js';
import { actorText } from '../../src/core/state/summaries.js';
import { askPerson } from '../../src/tools/built-in/workflow-tools.js';
import { commandLine, type CommandEnd } from '../support/command.js';
import { noteConsole } from '../../src/cli/reports/run-pages.js';
import { createDesk, type Desk } from '../support/requests.js';

let desk: Desk;
let program: Awaited<ReturnType<typeof commandLine>>;

const book = defineTool({
  name: 'book',
  description: 'books',
  input: z.object({ room: z.string() }),
  effect: 'keyed',
  execute: ({ room }) => {
    desk.did(`book ${room}`);
    return room;
  },
  undo: ({ room }) => desk.did(`unbook ${room}`),
});
const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ euros: z.number() }),
  effect: 'keyed',
  approval: 'always',
  execute: ({ euros }) => {
    desk.did(`pay ${euros}`);
    return 'paid';
  },
});
const base = { instructions: 'x', model: 'script', tools: [book, pay, askPerson()] };
const agents = [
  defineAgent({ ...base, name: 'clerk' }),
  defineAgent({ ...base, name: 'files' }),
  defineAgent({
    ...base,
    name: 'guarded',
    rules: [{ tool: 'pay', then: 'ask', deciders: 'not_requester' }],
  }),
  defineAgent({
    ...base,
    name: 'grouped',
    rules: [{ tool: 'pay', then: 'ask', deciders: ['group:ops'] }],
  }),
  defineAgent({ ...base, name: 'steps', limits: { steps: 1 }, onLimit: 'ask' }),
  defineAgent({ ...base, name: 'capped', onLimit: 'ask' }),
  defineAgent({ ...base, name: 'calls', limits: { toolCalls: 1 }, onLimit: 'ask' }),
];

beforeAll(async () => {
  desk = await createDesk();
  program = await commandLine();
  await desk.work(agents);
});
beforeEach(() => desk.reset());
afterAll(async () => await desk.close());

/** Types a command line, which ends with the place of the test. */
async function type(words: readonly string[]): Promise<CommandEnd> {
  return await program.here(words).ended;
}

async function statusOf(id: string): Promise<string> {
  const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
  const { code, stdout } = await type(['status', id, ...place]);
  expect(code).toBe(0);
  return stdout;
}

const TYPED: Readonly<Record<string, string>> = {
  TEXT: 'x',
  MESSAGE: 'x',
  JSON: '{}',
  N: '3',
  NAME: 'bob',
};

/** Returns the commands that the status of a run shows, by their first words. */
async function hintsOf(id: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const lines = (await statusOf(id)).split('\n').flatMap((line) => {
    const at = line.indexOf('npx perdure ');
    return at < 0 ? [] : [line.slice(at + 'npx perdure '.length).split('   ')[0] ?? ''];
  });
  return new Map(
    lines.map((line): [string, string[]] => {
      const words = (line.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll("'", ''));
      const end = words.findIndex((word, at) => words[at - 2] === '--task-queue' && word !== '');
      const own = end < 0 ? words : words.slice(0, end);
      return [own[0] ?? '', own.map((word) => TYPED[word] ?? word.replace(/=N$/, '=3'))];
    }),
  );
}

/** Types the command that the status of a run shows for a purpose. */
async function follow(id: string, command: string): Promise<CommandEnd> {
  const words = (await hintsOf(id)).get(command);
  if (words === undefined) throw new Error(`status shows no ${command}`);
  const end = await type(words);
  expect(end).toMatchObject({ code: 0 });
  return end;
}

describe('at a limit', () => {
  test.each(['steps', 'calls'])('the command that status shows raises it: %s', async (agent) => {
    desk.script([[{ book: { room: '1' } }], [{ book: { room: '2' } }], 'Done.']);
    const { handle } = await desk.asked({ agent, message: 'go' });
    const id = handle.workflowId;
    expect(await statusOf(id)).not.toMatch(/as '?raise|raise\|stop/);
    await follow(id, 'limits');
    expect((await desk.end(handle)).outcome).toMatchObject({ status: 'completed' });
  });

  test('a raise with a digest counts once, and with no other digest', async () => {
    desk.script([[{ book: { room: '1' } }], [{ book: { room: '2' } }], 'Done.']);
    const { handle, requests } = await desk.asked({ agent: 'steps', message: 'go' });
    const digest = requests[0]?.digest ?? '';
    await desk.rig.stopWorkers();
    const id = handle.workflowId;
    const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
    const raise = async (given: string) =>
      await type(['limits', id, ...place, '--add', 'steps=9', '--digest', given]);
    const other = ['limits', id, ...place, '--add', 'tool-calls=9', '--digest', digest];
    expect((await type(other)).stderr).toContain('--digest: request r1 is about steps; give --add');
    expect((await raise(digest)).stderr).toContain('raise');
    const again =
      /--digest: request r1 of run \S+ was decided by .* \(raise\) at .*; omit --digest/;
    expect((await raise(digest)).stderr).toMatch(again);
    expect((await raise('123456789012')).stderr).toMatch(again);
    await desk.work(agents);
    expect((await desk.end(handle)).outcome).toMatchObject({ status: 'completed', steps: 3 });
  });

  test('a decision of another kind is refused before it is asked for a digest, with what raises it', async () => {
    desk.script([{ book: { room: '1' } }, { book: { room: '2' } }, 'Done.']);
    const handle = await desk.rig.start({ agent: 'steps', message: 'go' });
    await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
    const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
    const { code, stderr } = await type(['approve', handle.workflowId, 'r1', ...place]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      '(not_offered): as: expected one of raise, stop for r1, got "approve"',
    );
    expect(stderr).toMatch(
      /; raise the limit with: npx perdure limits \S+ --add steps=N --digest /,
    );
    expect(stderr).not.toContain('after reading it');
    await handle.terminate();
  });

  test('a raise of a limit of the whole run names it, and also raises that of each turn', async () => {
    desk.script([[{ book: { room: '1' } }], [{ book: { room: '2' } }], 'Done.']);
    const limits = { steps: 6, run: { steps: 1 } };
    const { handle } = await desk.asked({ agent: 'capped', message: 'go', limits });
    const id = handle.workflowId;
    const shown = await statusOf(id);
    expect(shown).toContain('limit run.steps: 1 of 1 used');
    expect(shown).toContain(
      'raise the limit, and that of each turn if it has one, by this amount; what is used above the limit is added',
    );
    await follow(id, 'limits');
    const { outcome } = await desk.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', steps: 3 });
  });

  test('a lower limit at which the run waits is the one that is shown', async () => {
    desk.script([[{ book: { room: '1' } }], [{ book: { room: '2' } }], 'Done.']);
    const { handle } = await desk.asked({ agent: 'capped', message: 'go', limits: { steps: 2 } });
    const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
    const set = await type(['limits', handle.workflowId, ...place, '--limit', 'steps=1']);
    expect(set.stderr).toContain('It still waits at its limit: limit steps: 2 of 1 used.');
    await handle.terminate();
  });

  test('new limits release the run, or say that they do not', async () => {
    desk.script([[{ book: { room: '1' } }], [{ book: { room: '2' } }], 'Done.']);
    const { handle } = await desk.asked({ agent: 'steps', message: 'go' });
    const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
    const limits = ['limits', handle.workflowId, ...place, '--limit'];
    const same = await type([...limits, 'steps=1']);
    expect(same.stderr).toContain('It still waits at its limit: limit steps: 1 of 1 used.');
    const raised = await type([...limits.slice(0, -1), '--add', 'run.steps=1']);
    expect(raised.stderr).toContain('run.steps, which is none; use --limit run.steps=N');
    const more = await type([...limits, 'steps=9']);
    expect(more.stderr).toContain('It no longer waits for a higher limit.');
    expect((await desk.end(handle)).outcome).toMatchObject({ status: 'completed', steps: 3 });
  });
});

test('a command that ends at once prints no link that ends with it', async () => {
  const notes: string[] = [];
  const context = {
    console: async () => 'http://127.0.0.1:1',
    note: (line: string) => void notes.push(line),
  };
  expect(await noteConsole(context, { id: 'x', rests: true })).toBe(true);
  expect(notes).toEqual([]);
  await noteConsole(context, { id: 'x' });
  expect(notes).toEqual(['Console, while this command runs: http://127.0.0.1:1/#/run/x']);
});

test('an open run can be undone, messaged, and closed as shown; after its end, only read', async () => {
  desk.script([{ book: { room: '1' } }, 'Booked.', 'Hello.']);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'go', open: true });
  await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  const id = handle.workflowId;
  expect([...(await hintsOf(id)).keys()].toSorted()).toEqual(['close', 'send', 'undo']);
  await follow(id, 'undo');
  await desk.untilDone('unbook 1');
  desk.script([{ book: { room: '2' } }, 'Booked again.']);
  await follow(id, 'send');
  await follow(id, 'close');
  expect((await desk.end(handle)).outcome.status).toBe('completed');
  // The second booking is in time, but no workflow is left to undo it.
  expect([...(await hintsOf(id)).keys()]).toEqual(['transcript']);
  expect(await statusOf(id)).not.toContain('possible for');
  const who = `by ${actorText({ by: osUser() })}`;
  const { stdout } = await follow(id, 'transcript');
  const [first, second] = stdout.match(/→ book .*$/gm) ?? [];
  expect(first).toMatch(/"room":"1"/);
  expect(first?.endsWith(` · undone ${who}`)).toBe(true);
  expect(second).not.toContain('undo');
  const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
  const calls = await type(['transcript', id, '--calls', ...place]);
  expect(calls.stdout).toContain(`undone ${who}\n`);
  const { undos } = JSON.parse((await type(['transcript', id, '--json', ...place])).stdout);
  expect(undos).toMatchObject([{ tool: 'book', state: 'undone', by: osUser() }]);
});

test('a paused run with a request can be resumed and decided as shown', async () => {
  desk.script([{ pay: { euros: 5 } }, { ask_person: { question: 'Why?' } }, 'Done.']);
  const { handle } = await desk.asked({ agent: 'clerk', message: 'go' });
  const id = handle.workflowId;
  await handle.executeUpdate('pause', { args: [{}] });
  const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
  const left = await type(['attach', id, '--no-wait', ...place]);
  expect(left.code).toBe(3);
  expect(left.stderr).toMatch(
    /waiting\. It is paused\. After the decision, resume it with: .* resume /,
  );
  await follow(id, 'resume');
  await follow(id, 'approve');
  await desk.statusWhere(handle, ({ pending }) => pending[0]?.kind === 'question');
  await follow(id, 'answer');
  expect((await desk.end(handle)).outcome).toMatchObject({ status: 'completed' });
  expect(desk.done).toEqual(['pay 5']);
});

test('a person who may not decide is told so, and shown the command for one who may', async () => {
  desk.script([{ pay: { euros: 5 } }, 'Done.']);
  const { handle, requests } = await desk.asked({ agent: 'guarded', message: 'go', by: osUser() });
  const id = handle.workflowId;
  const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
  expect(await statusOf(id)).toContain('You may not decide (by: expected anyone but the requester');
  for (const read of ['status', 'inbox']) {
    const { stdout } = await type([read, id, ...place, '--json']);
    expect(stdout).toMatch(/"fix":"npx perdure approve [^"]* --by NAME"/);
  }
  const own = await type(['approve', id, 'r1', '--digest', requests[0]?.digest ?? '', ...place]);
  expect(own.code).toBe(1);
  expect(own.stderr).toMatch(
    /refused \(not_a_decider\): --by: expected anyone but the requester, got .*--by NAME/,
  );
  const bare = await type(['approve', id, 'r1', '--by', 'bob', ...place]);
  expect(bare.stderr).toMatch(/run: npx perdure approve .* --by bob/);
  const same = await type(['approve', id, 'r1', '--by', osUser(), ...place]);
  expect(same.stderr).toMatch(/run: npx perdure approve .* --by NAME/);
  await follow(id, 'approve');
  const { projection } = await desk.end(handle);
  expect(projection.state?.decisions).toMatchObject([{ as: 'approve', by: 'bob' }]);
});

test('a person who cannot decide by any command is shown none', async () => {
  desk.script([{ pay: { euros: 5 } }, 'Done.']);
  const { handle } = await desk.asked({ agent: 'grouped', message: 'go' });
  const id = handle.workflowId;
  const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
  const { code, stderr } = await type(['approve', id, 'r1', ...place]);
  expect(code).toBe(1);
  expect(stderr).toContain(
    'error: the decision about request r1 is refused (not_a_decider): --by: expected "group:ops", got',
  );
  expect(stderr).not.toContain('perdure approve');
  await handle.terminate();
});

test('a "yes" without the digest is refused in one sentence, with the command that shows the request', async () => {
  desk.script([{ pay: { euros: 5 } }, 'Done.']);
  const { handle } = await desk.asked({ agent: 'clerk', message: 'go', open: true });
  const id = handle.workflowId;
  const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
  const { code, stderr } = await type(['send', id, 'yes', ...place]);
  expect(code).toBe(1);
  const said = stderr.split('\n').filter((line) => line.startsWith('error: '));
  expect(said).toEqual([
    expect.stringMatching(
      /^error: message: the run waits for an answer to request r1: expected "yes" or "no" with the digest of what was shown, got "yes" without it; read it with: .* inbox \S+ r1 .*, and send the message again with its --digest$/,
    ),
  ]);
  const digest = /^digest: (\w+)$/m.exec((await type(['inbox', id, 'r1', ...place])).stdout)?.[1];
  const unclear = await type(['send', id, 'yes please', ...place, '--digest', digest ?? '']);
  expect(unclear.stderr).toMatch(
    /got "yes please"; read it with: .* inbox \S+ r1 .*, and send one of the expected messages with the same --digest/,
  );
  await type(['send', id, 'yes', ...place, '--digest', digest ?? '']);
  await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  expect(desk.done).toEqual(['pay 5']);
});

test('a command that was printed for another shell prints commands with its variables', async () => {
  desk.script([{ pay: { euros: 5 } }, 'Done.']);
  const { handle, requests } = await desk.asked({ agent: 'clerk', message: 'go' });
  const variables = {
    PERDURE_HOME: program.folder,
    PERDURE_SERVER: 'own',
    PERDURE_TASK_QUEUE: desk.rig.taskQueue,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
  };
  const hint = runnableTextElsewhere({ options: {}, env: variables }, requests[0]?.fix ?? '');
  const [, given = '', words = ''] = /^((?:\w+=\S+ )+)\S+ perdure (.*)$/.exec(hint) ?? [];
  const pairs = given.trim().split(' ');
  const env = Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/)));
  const { code, stderr } = await program.here(words.split(' '), { env }).ended;
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const all = Object.entries(variables).map((pair) => pair.join('='));
  expect(stderr).toContain(
    `Follow it with: ${[...all, 'PERDURE_HINTS=full', 'npx perdure attach'].join(' ')} `,
  );
  await desk.end(handle);
  const missing = await program.here(['status', 'none'], { env }).ended;
  expect(missing.stderr).toContain(`${all[0]} ${all[1]} ${all[2]} ${all[3]} PERDURE_HINTS=full`);
});

test('for an idle run without a worker, only a command that starts one is shown', async () => {
  desk.script([{ book: { room: '3' } }, 'Booked.']);
  const handle = await desk.rig.start({ agent: 'files', message: 'go', open: true });
  await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  const words = (await hintsOf(handle.workflowId)).get('undo') ?? [];
  await desk.rig.stopWorkers();
  const { code, stderr } = await type(words);
  expect(code).toBe(1);
  // The configuration of the command has an agent of this name. `attach` would not stay: the run has nothing to follow.
  expect(stderr).toMatch(/needs a worker.* npx perdure worker [^(]*; then run this command again/);
  expect(stderr).not.toContain('attach');
  await desk.rig.client.workflow.getHandle(handle.workflowId).terminate();
});
