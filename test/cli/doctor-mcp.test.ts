import { afterAll, expect, onTestFinished, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { resolve } from '../../src/cli/commands/limits.js';
import { mcpFindings } from '../../src/cli/doctor/mcp-servers.js';
import { defineConfig } from '../../src/config.js';
import { fileToolLock } from '../../src/storage/file-stores.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { runInProcess } from '../support/in-process.js';
import { fixtureFiles, listed } from '../support/mcp-agent.js';
import { bannerServer, programServer } from '../support/banner-server.js';
import { httpFixture } from '../support/mcp-http.js';

const far = await httpFixture(await fixtureFiles([listed('note'), listed('look')]));
afterAll(async () => await far.stop());

const gone = { name: 'gone', transport: 'http', url: 'http://127.0.0.1:9/mcp' } as const;

test('doctor lists the tools of the MCP servers of each agent, and reports those that do not answer', async () => {
  const mcp = [
    mcpServer({ name: 'far', transport: 'http', url: far.url, denyTools: ['note'] }),
    mcpServer(gone),
    mcpServer({ ...gone, name: 'spare', startup: 'best_effort' }),
    mcpServer({ ...gone, name: 'keyed', authEnv: 'NO_SUCH_VARIABLE' }),
  ];
  const agent = defineAgent({ name: 'a', instructions: 'x', mcp });
  const findings = await mcpFindings(defineConfig({ agents: [agent] }), {}, () =>
    fileToolLock('/nonexistent'),
  );
  expect(findings.map(({ name, level }) => `${name} ${level}`)).toEqual([
    'mcp far ok',
    'mcp gone problem',
    'mcp spare note',
    'mcp keyed problem',
  ]);
  expect(findings[0]?.text).toBe('answers; agent a uses 1 of its 2 tools');
  expect(findings[0]?.data['tools']).toEqual(['far__look']);
  expect(findings[1]?.text).toContain('cannot be reached');
  expect(findings[3]?.text).toContain('NO_SUCH_VARIABLE');
});

test('doctor compares rules with the tools that the servers list', async () => {
  const mcp = [
    mcpServer({ name: 'far', transport: 'http', url: far.url }),
    mcpServer({ ...gone, startup: 'best_effort' }),
  ];
  const ask = { then: 'ask' } as const;
  const rules = [
    { tool: 'far__look', ...ask },
    { tool: 'far__lok', ...ask },
  ];
  const agent = defineAgent({ name: 'a', instructions: 'x', mcp, rules });
  const config = defineConfig({ agents: [agent], rules: [{ tool: 'gone__x', ...ask }] });
  const findings = await mcpFindings(config, {}, () => fileToolLock('/nonexistent'));
  expect(findings.at(-1)).toMatchObject({ name: 'rules', level: 'problem', data: { rules: 3 } });
  expect(findings.at(-1)?.text.split('\n')).toEqual([
    expect.stringMatching(/^config: rules\[0\]\.tool: "gone__x" was not checked, because/),
    expect.stringMatching(
      /^agent "a": rules\[1\]\.tool: .* got "far__lok" \(did you mean "far__look"\)/,
    ),
  ]);
});

test('doctor reports no problem with rules that are harmless, or that cannot be checked', async () => {
  const ask = { then: 'ask' } as const;
  const mcp = [
    mcpServer({ name: 'far', transport: 'http', url: far.url, denyTools: ['note'] }),
    mcpServer({ ...gone, startup: 'best_effort' }),
  ];
  const find = async (...tools: readonly string[]) => {
    const rules = tools.map((tool) => ({ tool, ...ask }));
    const agent = defineAgent({ name: 'a', instructions: 'x', mcp, rules });
    const config = defineConfig({ agents: [agent] });
    return (await mcpFindings(config, {}, () => fileToolLock('/nonexistent'))).at(-1);
  };
  expect(await find('far__note')).toMatchObject({ name: 'rules', level: 'ok' });
  expect(await find('far__note', 'gone__x')).toMatchObject({ name: 'rules', level: 'note' });
});

test('doctor lists the tools of called agents, so their rules are checked as well', async () => {
  const mcp = [mcpServer({ name: 'far', transport: 'http', url: far.url })];
  const rules = [{ tool: 'far__look', then: 'ask' }] as const;
  const helper = defineAgent({ name: 'helper', description: 'd', instructions: 'x', mcp, rules });
  const agent = defineAgent({ name: 'a', instructions: 'x', agents: [helper] });
  const findings = await mcpFindings(defineConfig({ agents: [agent] }), {}, () =>
    fileToolLock('/nonexistent'),
  );
  expect(findings).toMatchObject([
    { name: 'mcp far', level: 'ok', text: 'answers; agent helper uses 2 of its 2 tools' },
    { name: 'rules', level: 'ok', text: '1 rule; each names a tool that exists' },
  ]);
});

test('doctor names the tools that are left out', async () => {
  const files = await fixtureFiles([
    listed('look'),
    listed('odd', { inputSchema: { type: 'object', properties: { a: { $ref: 'http://x/y' } } } }),
  ]);
  const server = await httpFixture(files);
  onTestFinished(() => server.stop());
  const mcp = [mcpServer({ name: 'far', transport: 'http', url: server.url })];
  const agent = defineAgent({ name: 'a', instructions: 'x', mcp });
  const [finding] = await mcpFindings(defineConfig({ agents: [agent] }), {}, () =>
    fileToolLock('/nonexistent'),
  );
  expect(finding).toMatchObject({
    level: 'note',
    text: 'answers; agent a uses 1 of its 2 tools; left out: tool "odd", because its schema refers to "http://x/y", which is not in it',
    data: { tools: ['far__look'], leftOut: ['odd'] },
  });
});

test('doctor names a server that writes beside the protocol, and what helps with each that fails', async () => {
  const mcp = [
    bannerServer("process.stdout.write('Starting ')", { name: 'loud' }),
    programServer("console.log('Listening'); setInterval(() => {}, 1000)", {
      name: 'rubbish',
      connectTimeout: 500,
    }),
    programServer("throw new TypeError('no luck')", { name: 'crash', cwd: '/' }),
    mcpServer({ name: 'typo', transport: 'stdio', command: 'nodee', args: ['x.js'] }),
    mcpServer({ name: 'glued', transport: 'stdio', command: 'nodee x.js' }),
    mcpServer(gone),
    mcpServer({ ...gone, name: 'keyed', authEnv: 'NO_SUCH_VARIABLE' }),
  ];
  const agent = defineAgent({ name: 'a', instructions: 'x', mcp });
  const findings = await mcpFindings(defineConfig({ agents: [agent] }), {}, () =>
    fileToolLock('/nonexistent'),
  );
  expect(findings.map(({ name, level, fix }) => `${name} ${level}: ${fix}`)).toEqual([
    'mcp loud note: let it write such text to its standard error',
    'mcp rubbish problem: check `command` and `args`',
    expect.stringMatching(
      /^mcp crash problem: run it alone to see why it does not answer: cd \/ && \S+ -e '.*no luck/,
    ),
    'mcp typo problem: check that the command is installed on this worker and that `cwd` exists',
    'mcp glued problem: arguments go to `args`: command: "nodee", args: ["x.js"]',
    'mcp gone problem: check that the server is running, and its `url`: http://127.0.0.1:9',
    'mcp keyed problem: set NO_SUCH_VARIABLE',
  ]);
  const texts = findings.map(({ text }) => text);
  expect(texts[0]).toMatch(/writes to its standard output .* \("Starting"\), which is ignored$/);
  expect(texts[1]).toMatch(/\("Listening"\), and no message$/);
  expect(texts[2]).toMatch(/it wrote: TypeError: no luck/);
  expect(texts[3]).toMatch(/spawn nodee ENOENT$/);
});

test('resolve --as accept needs the hash of the tool, and no other decision takes one', async () => {
  const place = { home: '/nonexistent' };
  const call = { id: 'x', call: 'call_1_1_0' };
  await expect(runInProcess(resolve, { ...call, as: 'accept' }, place)).rejects.toThrow(
    '--definition',
  );
  await expect(
    runInProcess(resolve, { ...call, as: 'retry', definition: 'abc' }, place),
  ).rejects.toThrow('--definition');
});
