import { randomUUID } from 'node:crypto';
import {
  ServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { executeUpdate } from '../../src/updates/execute-update.js';
import { gate } from '../support/gate.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
/** Starts a run that has no worker. */
let id: string;

beforeAll(async () => {
  rig = await createRig();
  id = `idle-${randomUUID()}`;
  await rig.start({ agent: 'no-such-run', message: 'x' }, id);
});
afterAll(async () => {
  await rig.client.workflow.getHandle(id).terminate();
  await rig.close();
});

/** An error of the server, as Temporal's client throws it. */
function serviceError(code: number, details: string): ServiceError {
  const cause = Object.assign(new Error(details), { code, details, metadata: {} });
  return new ServiceError('Workflow Update failed', { cause });
}

function failedUpdate(type: string, message: string): WorkflowUpdateFailedError {
  const cause = ApplicationFailure.create({ type, message, nonRetryable: true });
  return new WorkflowUpdateFailedError('Workflow Update failed', cause);
}

/** An update that fails with these errors first, and then succeeds. */
function failingOnce(error: Error): { readonly made: number; update: () => Promise<string> } {
  const tries = { made: 0 };
  return {
    get made() {
      return tries.made;
    },
    update: async () => {
      tries.made += 1;
      if (tries.made === 1) throw error;
      return 'taken';
    },
  };
}

describe('an update', () => {
  test.each([
    ['an accepted update whose segment ended', failedUpdate('AcceptedUpdateCompletedWorkflow', '')],
    ['an update that a segment did not process', failedUpdate('UnprocessedUpdate', '')],
    ['a run that continues in a new segment', serviceError(8, 'workflow is closing')],
    ['a run with ten updates in flight', serviceError(8, 'in-flight updates')],
    ['a segment that can take no more updates', serviceError(9, 'number of total updates')],
    ['a segment that has ended', new WorkflowNotFoundError('gone', 'x', undefined)],
    ['a worker that does not answer', new WorkflowUpdateRPCTimeoutOrCancelledError('x')],
    ['an unreachable server', serviceError(14, 'connection refused')],
  ])('is retried after %s', async (_what, error) => {
    const once = failingOnce(error);
    expect(await executeUpdate(rig.client, { id }, once.update)).toBe('taken');
    expect(once.made).toBe(2);
  });

  test('waits for its turn while eight others are in flight, and is not sent after its deadline', async () => {
    const open = gate();
    let sent = 0;
    const slow = async (): Promise<string> => {
      sent += 1;
      await open.wait();
      return 'taken';
    };
    const first = Array.from({ length: 8 }, () => executeUpdate(rig.client, { id }, slow));
    const late = executeUpdate(rig.client, { id }, slow, { within: 1_050 });
    const next = executeUpdate(rig.client, { id }, slow);
    await expect(late).rejects.toMatchObject({ mayArrive: false });
    await expect(late).rejects.toThrow('it was not delivered, so it is safe to send it again');
    expect(sent).toBe(8);
    open.release();
    expect(await Promise.all([...first, next])).toEqual(Array(9).fill('taken'));
    expect(sent).toBe(9);
  });

  test.each([
    ['the run itself refuses', failedUpdate('Refused', 'not today'), 'not today'],
    ['the server refuses permanently', serviceError(7, 'no permission'), 'no permission'],
  ])('is sent only once if %s', async (_what, error, why) => {
    const once = failingOnce(error);
    await expect(executeUpdate(rig.client, { id }, once.update)).rejects.toThrow(why);
    expect(once.made).toBe(1);
  });

  test.each([
    [{ code: 'refused' }, failedUpdate('Refused', 'no')],
    [{ code: 'no_run' }, new WorkflowNotFoundError('gone', 'x', undefined), 'no-such-run'],
    [{ code: 'not_delivered', mayArrive: false }, serviceError(7, 'no permission')],
    [{ code: 'not_delivered', mayArrive: false }, serviceError(8, 'in-flight updates')],
    [{ code: 'not_delivered', mayArrive: true }, new WorkflowUpdateRPCTimeoutOrCancelledError('x')],
    [{ code: 'not_delivered', mayArrive: true }, serviceError(14, 'connection refused')],
  ])('fails with %j after %s', async (known, error, run = id) => {
    const sending = executeUpdate(rig.client, { id: run }, () => Promise.reject(error), {
      within: 1,
    });
    await expect(sending).rejects.toMatchObject(known);
  });

  test.each([0, 'soon', null])('refuses to try for %j', async (within) => {
    const options = { within: within as never };
    const sending = executeUpdate(rig.client, { id }, () => Promise.resolve(), options);
    await expect(sending).rejects.toThrow(
      'within: expected a whole number of ms or words such as "30 seconds", got',
    );
  });

  test('stays uncertain after one uncertain try, whatever the next try reports', async () => {
    const errors = [serviceError(14, 'cut off'), serviceError(7, 'no permission')];
    const sending = executeUpdate(rig.client, { id }, () =>
      Promise.reject(errors.shift() ?? new Error()),
    );
    await expect(sending).rejects.toMatchObject({ mayArrive: true });
  });

  test.each([
    ['has ended', new WorkflowNotFoundError('gone', 'x', undefined)],
    ['was started before', new WorkflowExecutionAlreadyStartedError('x', 'no-such-run', 'agent')],
  ])('may have been accepted if one try was uncertain and the run then %s', async (_what, end) => {
    const errors = [new WorkflowUpdateRPCTimeoutOrCancelledError('x'), end];
    const target = { id: 'no-such-run', messageId: 'm-1' };
    const sending = executeUpdate(rig.client, target, () =>
      Promise.reject(errors.shift() ?? new Error()),
    );
    await expect(sending).rejects.toMatchObject({ mayArrive: true, messageId: 'm-1' });
    await expect(sending).rejects.toThrow(
      'the run may have received it earlier; read its transcript',
    );
  });

  test('is retried if the server was unreachable and cannot say whether the run is open', async () => {
    const away = vi.spyOn(rig.client.workflow, 'getHandle').mockImplementationOnce(() => {
      throw serviceError(14, 'connection refused');
    });
    const once = failingOnce(new WorkflowNotFoundError('gone', 'x', undefined));
    expect(await executeUpdate(rig.client, { id }, once.update)).toBe('taken');
    away.mockRestore();
  });

  test('reports the queue that no worker polls, and the id that makes a repeat safe', async () => {
    const silent = () => Promise.reject(new WorkflowUpdateRPCTimeoutOrCancelledError('x'));
    const sending = executeUpdate(rig.client, { id, messageId: 'm-1' }, silent, { within: 1 });
    await expect(sending).rejects.toMatchObject({ worker: 'missing', messageId: 'm-1' });
    await expect(sending).rejects.toThrow(
      `no worker polls task queue "${rig.taskQueue}"; it may still arrive; sent again with id "m-1"`,
    );
  });

  test('ends with its signal, and reports that it may still arrive', async () => {
    const over = new AbortController();
    const sending = executeUpdate(
      rig.client,
      { id },
      async () => {
        over.abort();
        throw new WorkflowUpdateRPCTimeoutOrCancelledError('x');
      },
      { signal: over.signal },
    );
    await expect(sending).rejects.toThrow('the wait for an answer was aborted; it may still');
    await expect(sending).rejects.toMatchObject({ mayArrive: true });
  });

  test('is not retried if the run has ended or never existed', async () => {
    const once = failingOnce(new WorkflowNotFoundError('gone', 'x', undefined));
    const sending = executeUpdate(rig.client, { id: 'no-such-run' }, once.update);
    await expect(sending).rejects.toThrow('there is no run "no-such-run"');
    expect(once.made).toBe(1);
  });
});
