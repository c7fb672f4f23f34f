import { vi } from 'vitest';

/** The contract of `openai.test.ts` with version 7 of the client, which says that it needs Node 22. */
vi.mock('openai', async () => await import('openai-7'));
await import('./openai.test.js');
