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
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
/** A run that lives, though nobody works on it. */
let id: string;

beforeAll(async () => {
  rig = await createRig();
  id = `idle-${randomUUID()}`;
  await rig.start({ agent: 'nobody', message: 'x' }, id);
});
afterAll(async () => {
  await rig.client.workflow.getHandle(id).terminate();
  await rig.close();
});

/** Refused by the server on its way, as Temporal's client tells it. */
function serviceError(code: number, details: string): ServiceError {
  const cause = Object.assign(new Error(details), { code, details, metadata: {} });
  return new ServiceError('Workflow Update failed', { cause });
}

function failedUpdate(type: string, message: string): WorkflowUpdateFailedError {
  const cause = ApplicationFailure.create({ type, message, nonRetryable: true });
  return new WorkflowUpdateFailedError('Workflow Update failed', cause);
}

/** An update that fails so, and is taken when it is made again. */
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

describe('what is said to a run', () => {
  test.each([
    ['an update that a segment left behind', failedUpdate('AcceptedUpdateCompletedWorkflow', '')],
    ['an update that a segment did not come to', failedUpdate('UnprocessedUpdate', '')],
    ['a run on its way to a new segment', serviceError(8, 'workflow is closing')],
    ['a run that takes ten updates already', serviceError(8, 'in-flight updates')],
    ['a segment that can take no more updates', serviceError(9, 'number of total updates')],
    ['a segment that is no more', new WorkflowNotFoundError('gone', 'x', undefined)],
    ['a worker that does not answer', new WorkflowUpdateRPCTimeoutOrCancelledError('x')],
    ['a server that is away', serviceError(14, 'connection refused')],
  ])('is said again after %s', async (_what, error) => {
    const once = failingOnce(error);
    expect(await executeUpdate(rig.client, { id }, once.update)).toBe('taken');
    expect(once.made).toBe(2);
  });

  test.each([
    ['the run itself refuses', failedUpdate('Refused', 'not today'), 'not today'],
    ['the server refuses for good', serviceError(7, 'no permission'), 'no permission'],
  ])('is said but once where %s', async (_what, error, why) => {
    const once = failingOnce(error);
    await expect(executeUpdate(rig.client, { id }, once.update)).rejects.toThrow(why);
    expect(once.made).toBe(1);
  });

  test.each([
    [{ code: 'refused' }, failedUpdate('Refused', 'no')],
    [{ code: 'refused' }, new WorkflowNotFoundError('gone', 'x', undefined), 'nobody'],
    [{ code: 'not_delivered', mayArrive: false }, serviceError(7, 'no permission')],
    [{ code: 'not_delivered', mayArrive: false }, serviceError(8, 'in-flight updates')],
    [{ code: 'not_delivered', mayArrive: true }, new WorkflowUpdateRPCTimeoutOrCancelledError('x')],
    [{ code: 'not_delivered', mayArrive: true }, serviceError(14, 'connection refused')],
  ])('is known to be %j after %s', async (known, error, run = id) => {
    const said = executeUpdate(rig.client, { id: run }, () => Promise.reject(error), {
      withinMs: 1,
    });
    await expect(said).rejects.toMatchObject(known);
  });

  test('stays uncertain where one try was, whatever the next one says', async () => {
    const errors = [serviceError(14, 'cut off'), serviceError(7, 'no permission')];
    const said = executeUpdate(rig.client, { id }, () =>
      Promise.reject(errors.shift() ?? new Error()),
    );
    await expect(said).rejects.toMatchObject({ mayArrive: true });
  });

  test.each([
    ['is gone', new WorkflowNotFoundError('gone', 'x', undefined)],
    ['was started before', new WorkflowExecutionAlreadyStartedError('x', 'nobody', 'agent')],
  ])('may have been taken where one try was uncertain, and the run then %s', async (_what, end) => {
    const errors = [new WorkflowUpdateRPCTimeoutOrCancelledError('x'), end];
    const told = { id: 'nobody', messageId: 'm-1' };
    const said = executeUpdate(rig.client, told, () =>
      Promise.reject(errors.shift() ?? new Error()),
    );
    await expect(said).rejects.toMatchObject({ mayArrive: true, messageId: 'm-1' });
    await expect(said).rejects.toThrow('it may have taken it before; read its transcript');
  });

  test('is said again where the server, just away, does not say whether the run lives', async () => {
    const away = vi.spyOn(rig.client.workflow, 'getHandle').mockImplementationOnce(() => {
      throw serviceError(14, 'connection refused');
    });
    const once = failingOnce(new WorkflowNotFoundError('gone', 'x', undefined));
    expect(await executeUpdate(rig.client, { id }, once.update)).toBe('taken');
    away.mockRestore();
  });

  test('names the queue that no worker polls, and the id that makes a repeat safe', async () => {
    const silent = () => Promise.reject(new WorkflowUpdateRPCTimeoutOrCancelledError('x'));
    const said = executeUpdate(rig.client, { id, messageId: 'm-1' }, silent, { withinMs: 1 });
    await expect(said).rejects.toMatchObject({ worker: 'missing', messageId: 'm-1' });
    await expect(said).rejects.toThrow(
      `no worker polls task queue "${rig.taskQueue}"; it may still arrive; sent again with id "m-1"`,
    );
  });

  test('ends with its signal, and says that it may still arrive', async () => {
    const over = new AbortController();
    const said = executeUpdate(
      rig.client,
      { id },
      async () => {
        over.abort();
        throw new WorkflowUpdateRPCTimeoutOrCancelledError('x');
      },
      { signal: over.signal },
    );
    await expect(said).rejects.toThrow('the wait for an answer was aborted; it may still');
    await expect(said).rejects.toMatchObject({ mayArrive: true });
  });

  test('is not said again to a run that has ended or never was', async () => {
    const once = failingOnce(new WorkflowNotFoundError('gone', 'x', undefined));
    const said = executeUpdate(rig.client, { id: 'nobody' }, once.update);
    await expect(said).rejects.toThrow('run nobody has ended, or never existed');
    expect(once.made).toBe(1);
  });
});
