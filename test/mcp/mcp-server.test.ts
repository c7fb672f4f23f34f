import { describe, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { mcpServer, type McpServerOptions } from '../../src/mcp/mcp-server.js';

const stdio = { name: 'desk', transport: 'stdio', command: 'x' };
const http = { name: 'desk', transport: 'http', url: 'https://host/mcp' };

const define = (options: object): unknown => mcpServer(options as McpServerOptions);

describe('mcpServer', () => {
  test('fills in what was left open', () => {
    expect(define(stdio)).toEqual({
      ...stdio,
      allowTools: null,
      denyTools: [],
      effects: {},
      timeoutMs: 120_000,
      connectMs: 30_000,
      startup: 'strict',
    });
  });

  test.each([
    [{ ...stdio, name: 'a__b' }, 'name "a__b" is not possible'],
    [{ ...stdio, name: '_a' }, 'name "_a" is not possible'],
    [{ ...stdio, transport: 'sse' }, 'transport "sse": give "stdio"'],
    [{ ...stdio, command: '' }, '`command` must name a program, not ""'],
    [{ ...stdio, url: 'https://x' }, 'there is no option `url` for stdio'],
    [{ ...stdio, env: { A: 'b' } }, '`env` must be a list of names'],
    [{ ...stdio, env: ['A=b'] }, '`env` must be a list of names'],
    [{ ...stdio, effects: { a: 'write' } }, 'effects.a is "write"; give "read"'],
    [{ ...stdio, allowTools: 'a' }, '`allowTools` must be a list of tools'],
    [{ ...stdio, timeout: 0 }, '`timeout` must be a positive number'],
    [{ ...stdio, startup: 'lazy' }, 'startup "lazy": give "strict"'],
    [{ ...http, url: 'host/mcp' }, '`url` must be an http(s) address'],
    [{ ...http, url: 'https://me:secret@host/mcp' }, '`url` holds a name or password'],
    [{ ...http, authEnv: 'sk-123' }, '`authEnv` must be the name of an environment variable'],
    [{ ...http, headersEnv: { 'X-Key': 'a b' } }, '`headersEnv` must be headers'],
    [{ ...http, url: 'http://host/mcp', authEnv: 'KEY' }, 'keys are not sent over plain http'],
  ])('refuses %j, and says what would be right', (options, message) => {
    expect(() => define(options)).toThrow(message);
  });

  test('never repeats what may be a secret', () => {
    expect(() => define({ ...http, authEnv: 'sk-123-canary' })).toThrow(/^(?!.*canary)/s);
    expect(() => define({ ...http, url: 'https://me:canary@host/mcp' })).toThrow(/^(?!.*canary)/s);
  });
});

describe('the servers of an agent', () => {
  const agent = (mcp: readonly unknown[]): unknown =>
    defineAgent({ name: 'a', instructions: 'x', mcp: mcp as never });

  test('are what mcpServer made, each under a name of its own', () => {
    const server = mcpServer({ name: 'desk', transport: 'stdio', command: 'x' });
    expect(() => agent([stdio])).toThrow('mcp[0] is no server; make it with mcpServer({…})');
    expect(() => agent([server, server])).toThrow('two MCP servers are named "desk"');
  });
});
