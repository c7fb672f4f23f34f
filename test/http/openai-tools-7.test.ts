import { vi } from 'vitest';

/** The contract of `openai-tools.test.ts` with version 7 of the client. */
vi.mock('openai', async () => await import('openai-7'));
// Test files share processes: without the query, the module may be there already, and adds no tests.
const contract = './openai-tools.test.js?client=7';
await import(/* @vite-ignore */ contract);
