import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { answer, approve, deny, edit } from '../../src/cli/commands/approve.js';
import { inbox, list } from '../../src/cli/commands/list.js';
import { pause, resume } from '../../src/cli/commands/pause.js';
import { status } from '../../src/cli/commands/status.js';
import { type Command, type GlobalOptions, UsageError } from '../../src/cli/context.js';
import { osUser } from '../../src/cli/input/option-parsers.js';
import { NOTHING_BELOW } from '../../src/client/below.js';
import { reportWaiting } from '../../src/cli/reports/report-run.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { readRun } from '../../src/history/read-run.js';
import type { Model } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

const AGENT = `inbox-${randomUUID()}`;
const GUARDED = `${AGENT}-guarded`;
let rig: Rig;

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ to: z.string() }),
  effect: 'keyed',
  approval: 'always',
  execute: async ({ to }) => `paid ${to}`,
});
const model: Model = {
  async call({ messages }) {
    const last = messages.at(-1);
    if (last?.role === 'tool') return replyText(`read: ${last.text}`);
    return replyCall('pay', { to: messages[0]?.text ?? '' });
  },
};

async function work(): Promise<void> {
  const agent = defineAgent({ name: AGENT, instructions: 'x', model: 'm', tools: [pay] });
  const guarded = defineAgent({
    name: GUARDED,
    instructions: 'x',
    model: 'm',
    tools: [pay],
    rules: [{ tool: 'pay', then: 'ask', deciders: 'not_requester' }],
  });
  await rig.worker([agent, guarded], { models: { m: model } });
}

beforeAll(async () => {
  rig = await createRig();
  await work();
});
afterAll(async () => await rig.close());

async function perdure<Options>(
  command: Command<Options>,
  options: Options,
  how: GlobalOptions = {},
): Promise<CommandOutput> {
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue };
  return await runInProcess(command, options, { ...place, ...how });
}

/** Starts a run, and returns it with its request's digest once it waits. */
async function waiting(message: string, rest: { agent?: string; by?: string } = {}) {
  const handle = await rig.start({ agent: AGENT, message, ...rest });
  const digest = await vi.waitFor(
    async () => {
      const { status: phase, pending } = await handle.query<RunStatus>('status');
      expect(phase).toBe('waiting_decision');
      return pending[0]?.digest ?? '';
    },
    { timeout: 20_000, interval: 50 },
  );
  return { handle, id: handle.workflowId, digest };
}

test('an inbox names the agent that is probably meant', async () => {
  const { stderr, code } = await perdure(inbox, { agent: 'fils' });
  expect(stderr).toContain('No run is waiting for a decision.');
  expect(stderr).toContain('"fils" (nearest: files).');
  expect(code).toBe(0);
});

/** Visibility lags behind the history. */
const WITHIN = { timeout: 20_000, interval: 100 };

describe('the inbox', () => {
  test('lists requests for people, and prints one JSON array for programs', async () => {
    const { handle, id, digest } = await waiting('x\u202ey');
    await vi.waitFor(async () => {
      const { stdout } = await perdure(inbox, { agent: AGENT }, { json: true });
      const found = JSON.parse(stdout) as readonly { run: string }[];
      expect(found.find(({ run }) => run === id)).toMatchObject({
        run: id,
        agent: AGENT,
        id: 'r1',
        kind: 'approval',
        tool: 'pay',
        digest,
      });
    }, WITHIN);
    const { stdout, code } = await perdure(inbox, { agent: AGENT });
    expect(stdout).toContain(`r1 of run ${id}`);
    expect(stdout).toContain(`inbox ${id} r1`);
    expect(code).toBe(0);
    const { stdout: whole } = await perdure(inbox, { id, request: 'r1' });
    expect(whole).toContain('  to: "x\\u202ey"');
    expect(whole).toContain(`approve ${id} r1 --digest ${digest.slice(0, 12)}`);
    const { stdout: rows } = await perdure(list, { agent: AGENT, limit: 50 });
    expect(rows).toMatch(new RegExp(`${id} +${AGENT} +waiting_decision +approval`));
    await handle.cancel();
  });

  test('leaves out the requests of a run whose cancel waits for a worker', async () => {
    const kept = await waiting('kept');
    const { handle, id } = await waiting('canceled');
    const shown = async () => await perdure(inbox, { agent: AGENT });
    await vi.waitFor(async () => expect((await shown()).stdout).toContain(id), WITHIN);
    await rig.stopWorkers();
    onTestFinished(async () => await work());
    await handle.cancel();
    const { stdout, stderr } = await shown();
    expect(stdout).toContain(kept.id);
    expect(stdout).not.toContain(id);
    expect(stderr).toContain(`Requests of run ${id} are left out: a cancel is requested`);
    // A worker of this configuration would block the run.
    expect(stderr).toContain(
      `takes effect when a worker runs. This configuration does not have agent "${AGENT}": start the program that has it`,
    );
    expect(stderr).not.toContain(' worker --');
    await kept.handle.terminate();
  });

  test('names in JSON who may decide, with commands that are not refused', async () => {
    const own = await waiting('Oslo', { agent: GUARDED, by: osUser() });
    const other = await waiting('Rome', { agent: GUARDED, by: 'ann' });
    await vi.waitFor(async () => {
      const { stdout } = await perdure(inbox, { agent: GUARDED }, { json: true });
      const found = JSON.parse(stdout) as readonly { run: string; fix: string }[];
      const of = (id: string) => found.find(({ run }) => run === id);
      expect(of(own.id)?.fix).toMatch(/ approve .* r1 .*--by NAME$/);
      expect(of(own.id)).toMatchObject({ deciders: ['not_requester'] });
      expect(of(other.id)?.fix).toMatch(/ approve /);
      expect(of(other.id)?.fix).not.toContain('--by');
    }, WITHIN);
    await Promise.all([own.handle.cancel(), other.handle.cancel()]);
  });

  test('is empty for an agent without requests', async () => {
    const { stdout, stderr } = await perdure(inbox, { agent: `none-${randomUUID()}` });
    expect({ stdout, stderr }).toMatchObject({ stdout: '' });
    expect(stderr).toContain('No run is waiting for a decision.');
  });
});

/** Ends as a command does whose worker was in its process. */
const leave: Command<{ readonly id: string; readonly by?: string }> = {
  declare: (entry) => entry,
  async run(context, { id, by }) {
    const run = await readRun(rig.client, id);
    const last = { runId: run.runId, view: run.view };
    const left = { ...run, last, wasHosting: true, below: NOTHING_BELOW };
    return await reportWaiting(context, { ...left, by });
  },
};

test('a command that ends says "you" only to a person who may decide', async () => {
  const open = await waiting('Oslo', { by: osUser() });
  const { stderr } = await perdure(leave, { id: open.id });
  expect(stderr).toContain('You can decide now; the run continues when a worker runs');
  const guarded = await waiting('Rome', { agent: GUARDED, by: osUser() });
  const told = await perdure(leave, { id: guarded.id });
  expect(told.stderr).toContain('A person who may decide can do so now;');
  expect(told.stderr).toMatch(/approve .* --by NAME/);
  expect(told.stderr).not.toContain('unverified:');
  // The name that was given for the run holds for its commands, too.
  const named = await perdure(leave, { id: guarded.id, by: 'ann lee' });
  expect(named.stderr).toContain('You can decide now;');
  expect(named.stderr).toMatch(/approve .* --by 'ann lee'/);
  await Promise.all([open.handle.cancel(), guarded.handle.cancel()]);
});

test('the requester who gives their name as it is shown is not another person', async () => {
  const { handle, id, digest } = await waiting('Rome', { agent: GUARDED, by: osUser() });
  const { stdout } = await perdure(inbox, { id });
  const shown = osUser().replace('unverified:', '');
  expect(stdout).toContain(`${shown} (not verified)`);
  for (const by of [shown, `${shown} (not verified)`]) {
    await expect(perdure(approve, { id, request: 'r1', digest, by })).rejects.toThrow(
      'expected anyone but the requester',
    );
  }
  await perdure(approve, { id, request: 'r1', digest, by: 'ann' });
  expect((await rig.end(handle)).outcome.answer).toBe('read: paid Rome');
});

describe('a decision', () => {
  test('says that the run is paused, with the command that lets it continue', async () => {
    const { handle, id, digest } = await waiting('Oslo');
    await perdure(pause, { id });
    const { stderr } = await perdure(approve, { id, request: 'r1', digest });
    expect(stderr).toMatch(/: approve; the run is paused; resume it with: .* resume run-/);
    expect(stderr).not.toContain('the run resumes');
    await perdure(resume, { id });
    expect((await rig.end(handle)).outcome.answer).toBe('read: paid Oslo');
  });

  test('names no worker for a signal to all runs while one runs', async () => {
    const { handle, id } = await waiting('Oslo');
    await vi.waitFor(async () => {
      const { stdout } = await perdure(list, { agent: AGENT, idPrefix: id, limit: 1 });
      expect(stdout).toContain(id);
    }, WITHIN);
    const { stderr } = await perdure(resume, { all: true, agent: AGENT });
    expect(stderr).toMatch(
      /^Signaled \d+ runs? of agent \S+ to resume: each that is paused resumes, and a blocked one tries again\.$/m,
    );
    await handle.terminate();
  });

  test('approves exactly what was shown, and records the OS user', async () => {
    const { handle, id, digest } = await waiting('Rome');
    const given = { id, request: 'r1', digest: digest.slice(0, 12) };
    const { stdout } = await perdure(approve, given, { json: true });
    expect(JSON.parse(stdout)).toMatchObject({ id, request: 'r1', as: 'approve', resolved: true });
    const { outcome, projection } = await rig.end(handle);
    expect(outcome.answer).toBe('read: paid Rome');
    expect(projection.state?.decisions?.at(-1)?.by).toMatch(/^unverified:os-user:/);
  });

  test('without a digest shows the request and the command, and decides nothing', async () => {
    const { handle, id, digest } = await waiting('Oslo');
    const bare = perdure(approve, { id, request: 'r1' });
    await expect(bare).rejects.toThrow(UsageError);
    await expect(bare).rejects.toThrow(`approve ${id} r1 --digest ${digest.slice(0, 12)}`);
    const edited = perdure(edit, { id, request: 'r1', arguments: { to: 'Bergen' } });
    await expect(edited).rejects.toThrow('--digest: expected the digest');
    const wrong = perdure(approve, { id, request: 'r1', digest: 'f'.repeat(12) });
    await expect(wrong).rejects.toThrow(
      `may have changed; before you decide, read it again: perdure inbox ${id}`,
    );
    expect(await handle.query<RunStatus>('status')).toMatchObject({ status: 'waiting_decision' });
    await handle.cancel();
  });

  test('denies with a note for the model', async () => {
    const { handle, id, digest } = await waiting('Lima');
    await perdure(deny, { id, request: 'call_1_1_0', digest, note: 'too far', by: 'ann' });
    expect((await rig.end(handle)).outcome.answer).toContain('too far');
  });

  test('edits all arguments, and answers in place of the tool', async () => {
    const one = await waiting('Kyiv');
    const { id, digest } = one;
    await perdure(edit, { id, request: 'r1', digest, arguments: { to: 'Lviv' } });
    expect((await rig.end(one.handle)).outcome.answer).toMatch(
      /changed the arguments.*\n?paid Lviv/s,
    );
    const two = await waiting('Bonn');
    const given = { id: two.id, request: 'r1', digest: two.digest, text: ['paid', 'by', 'hand'] };
    await perdure(answer, given);
    expect((await rig.end(two.handle)).outcome.answer).toContain('paid by hand');
  });

  test("is refused with the run's reason", async () => {
    const { handle, id, digest } = await waiting('Cairo');
    const refused = perdure(approve, { id, request: 'r1', digest, grant: 'same_call', by: 'x' });
    await refused;
    await rig.end(handle);
    await expect(perdure(deny, { id, request: 'r1', digest })).rejects.toThrow(
      /^request r1 of run \S+ was decided by x \(approve\) at 20\S+ [\d:]{8}, and cannot be decided again\. See: npx perdure status /,
    );
    const call = perdure(approve, { id, request: 'call_1_1_0', digest });
    await expect(call).rejects.toThrow('request r1 of run');
    const { stdout } = await perdure(status, { id });
    expect(stdout).toMatch(/ approve r1 \(call_1_1_0\) +by x/);
  });

  test('is named by commands that can be pasted, in the status and in its JSON', async () => {
    const { handle, id, digest } = await waiting('Lima');
    const place = { json: true, config: false, namespace: 'default' } as const;
    const shown = JSON.parse((await perdure(status, { id }, place)).stdout) as RunStatus;
    const flags = `--no-config --address ${inject('temporalAddress')} --namespace default --task-queue ${rig.taskQueue}`;
    const command = `npx perdure approve ${flags} ${id} r1 --digest ${digest.slice(0, 12)}`;
    expect(shown.pending[0]?.fix).toBe(command);
    expect(shown.message).toContain(`decide: ${command}`);
    await handle.cancel();
  });
});
