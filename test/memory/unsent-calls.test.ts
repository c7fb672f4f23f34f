import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { decision, replyCall, replyText, runInMemory } from '../../src/testing.js';
import { useSourceBundle } from '../support/memory.js';
import { fixtureFiles, listed } from '../support/mcp-agent.js';
import { httpFixture } from '../support/mcp-http.js';

beforeAll(useSourceBundle);

type Answer = 'drop' | 'gone' | 429;

/**
 * Runs an agent whose model makes one `keyed` call of an MCP server, which answers the first attempts so,
 * and the others like the last one; `gone`: it cannot be reached any more.
 */
async function called(...answers: readonly Answer[]) {
  const files = await fixtureFiles([listed('note')]);
  let calls = 0;
  const server = await httpFixture(files, {
    answer: (body) => {
      if (!body.includes('"tools/call"')) return null;
      const answer = answers[Math.min(calls++, answers.length - 1)];
      if (answer === 'gone') void server.stop();
      return answer === 'gone' ? 'drop' : (answer ?? null);
    },
  });
  onTestFinished(async () => await server.stop().catch(() => undefined));
  const { url } = server;
  const far = mcpServer({ name: 'far', transport: 'http', url, effects: { note: 'keyed' } });
  const run = await runInMemory(defineAgent({ name: 'a', instructions: 'x', mcp: [far] }), {
    message: 'note',
    model: [replyCall('far__note', { n: 1 }), replyText('done')],
    on: { request: { outcome_unknown: decision({ as: 'happened', result: 'noted' }) } },
  });
  return { text: run.transcript.messages.find(({ role }) => role === 'tool')?.text, run };
}

describe('a `keyed` call whose last attempts were not sent', () => {
  test.each<{ answers: readonly Answer[] }>([
    { answers: ['drop', 429] },
    { answers: [429, 'drop', 429] },
    { answers: ['gone'] },
  ])('is left to a person if an earlier one may have acted: $answers', async ({ answers }) => {
    const { text, run } = await called(...answers);
    expect(text).toBe('noted');
    expect(run.requests[0]?.why).toContain('; an earlier attempt may have taken effect');
  });

  test('has failed if none was sent', async () => {
    const { text, run } = await called(429);
    expect(text).toContain('"tool_error"');
    expect(text).not.toContain('may have taken effect');
    expect(run.requests).toEqual([]);
  });
});
