import {
  ActivityFailure,
  DefaultFailureConverter,
  defaultPayloadConverter,
} from '@temporalio/common';
import { expect, test } from 'vitest';
import { decodeFailure } from '../../src/history/history-event.js';
import { failureFact } from '../../src/workflows/do-work.js';

const details = { payloads: [defaultPayloadConverter.toPayload({ type: 'blocked' })] };
const application = {
  message: 'interrupted',
  applicationFailureInfo: { type: 'Retry', details },
};
const timeout = { message: 'activity Heartbeat timeout', timeoutFailureInfo: {} };
const server = { message: 'the server failed', serverFailureInfo: {} };

/** Failures that an event can have, each also with what it was caused by. */
const CASES = [application, timeout, server].flatMap((one) => [
  one,
  ...[application, timeout, server].map((cause) => ({ ...one, cause })),
]);

test.each(CASES)('a reader sees what the workflow sees: %o', (cause) => {
  const seen = new DefaultFailureConverter().failureToError(
    {
      message: 'Activity task failed',
      activityFailureInfo: { activityType: { name: 'runTool' } },
      cause,
    },
    defaultPayloadConverter,
  );
  expect(seen).toBeInstanceOf(ActivityFailure);
  const fact = failureFact({ activity: 'runTool', input: {} }, seen);
  expect(fact).toMatchObject({ type: 'failed', failure: decodeFailure(cause) });
});
