import { describe, expect, test } from 'vitest';
import { sourceBundle } from './support/bundle.js';

/** What a workflow must never hold: user code's libraries, Node, and the edge of perdure itself. */
const FORBIDDEN = [
  'node_modules/zod',
  'node_modules/openai',
  'node_modules/lru-cache',
  'src/activities',
  'src/models',
  'src/tools',
  'src/client',
  'src/output',
  'src/prompts',
  'src/classify',
  'src/archive',
  'src/agents',
  'src/mcp',
  'src/secrets',
  'src/worker',
  'modelcontextprotocol',
];

describe('the workflow bundle', () => {
  test('holds the engine and nothing of its edge', async () => {
    const bundle = await sourceBundle();
    const code = 'code' in bundle ? bundle.code : '';
    const modules = new Set(code.match(/(?:node_modules|src)\/[@\w./-]+/g));
    expect([...modules].filter((path) => path.includes('src/core/')).length).toBeGreaterThan(20);
    const found = [...modules].filter((path) => FORBIDDEN.some((each) => path.includes(each)));
    expect(found).toEqual([]);
  });

  test('stays small: each cached run pays for it', async () => {
    const bundle = await sourceBundle();
    // The SDK's own share is about 0.9 MB, source maps apart.
    const code = ('code' in bundle ? bundle.code : '').replace(/\/\/# sourceMappingURL=.*/g, '');
    expect(code.length).toBeLessThan(1_600_000);
  });
});
