import { afterAll, expect, test, vi } from 'vitest';
import { contractPackages } from '../support/contract-packages.js';
import { startRemoteChats } from '../support/remote-ui-chat.js';

/** The contract of `ui-stream.test.ts` with version 7 of the AI SDK, in a process of Node 22. */
const packages = await contractPackages();
const chats = typeof packages === 'string' ? null : await startRemoteChats(packages);
afterAll(async () => {
  vi.doUnmock('../support/ui-chat.js');
  await chats?.close();
});

if (chats !== null) {
  vi.doMock('../support/ui-chat.js', async (original) => {
    return { ...(await original<object>()), UiChat: chats.UiChat };
  });
  // Test files share processes: without the query, the module may be there already, and adds no tests.
  const contract = './ui-stream.test.js?client=7';
  await import(/* @vite-ignore */ contract);
}

test('the chats were those of version 7, on Node 22 or later', (context) => {
  if (typeof packages === 'string') return context.skip(packages);
  const { ai = '', node = '' } = chats?.versions ?? {};
  expect(Number.parseInt(ai, 10)).toBe(7);
  expect(Number.parseInt(node, 10)).toBeGreaterThanOrEqual(22);
  expect(chats?.opened()).toBeGreaterThan(0);
});
