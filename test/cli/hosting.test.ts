import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import type { CliContext } from '../../src/cli/context.js';
import { createHosting } from '../../src/cli/hosting/hosting.js';
import { msToTs } from '../../src/temporal/sdk-internals.js';

/** Returns whether a command is alone on a queue with this poller; `ageMs`: the age of its last poll. */
async function isAloneBeside(identity: string, ageMs = 0): Promise<boolean> {
  const pollers = [{ identity, lastAccessTime: msToTs(Date.now() - ageMs) }];
  const workflowService = { describeTaskQueue: async () => ({ pollers }) };
  const client = { options: { namespace: 'default' }, workflowService };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the part that this question uses
  const context = { client: async () => client } as unknown as CliContext;
  return await createHosting(context, 'queue').isAlone();
}

test('a command that hosted a worker is alone only while no other worker polls', async () => {
  expect(await isAloneBeside('7@another-host')).toBe(false);
  expect(await isAloneBeside('7@another-host', 120_000)).toBe(true);
  // A process that has ended.
  expect(await isAloneBeside(`4194999@${hostname()}`)).toBe(true);
});
