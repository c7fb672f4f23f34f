import { randomUUID } from 'node:crypto';
import {
  ServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answered } from '../../src/client/answered.js';
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
  ])('is said again after %s', async (_what, error) => {
    const once = failingOnce(error);
    expect(await answered(rig.client, id, once.update)).toBe('taken');
    expect(once.made).toBe(2);
  });

  test.each([
    ['the run itself refuses', failedUpdate('Refused', 'not today'), 'not today'],
    ['nobody answers', new WorkflowUpdateRPCTimeoutOrCancelledError('x'), 'no answer within 10 s'],
    ['the server refuses for good', serviceError(7, 'no permission'), 'no permission'],
  ])('is said but once where %s', async (_what, error, why) => {
    const once = failingOnce(error);
    await expect(answered(rig.client, id, once.update)).rejects.toThrow(why);
    expect(once.made).toBe(1);
  });

  test('is known to be uncertain only where nobody answered', async () => {
    const silent = failingOnce(new WorkflowUpdateRPCTimeoutOrCancelledError('x'));
    const refused = failingOnce(failedUpdate('Refused', 'no'));
    await expect(answered(rig.client, id, silent.update)).rejects.toMatchObject({
      isUncertain: true,
    });
    await expect(answered(rig.client, id, refused.update)).rejects.toMatchObject({
      isUncertain: false,
    });
  });

  test('is not said again to a run that has ended or never was', async () => {
    const once = failingOnce(new WorkflowNotFoundError('gone', 'x', undefined));
    const said = answered(rig.client, 'nobody', once.update);
    await expect(said).rejects.toThrow('run nobody has ended, or never was');
    expect(once.made).toBe(1);
  });
});
