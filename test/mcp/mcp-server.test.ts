import { describe, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { mcpServer, type McpServerOptions } from '../../src/mcp/mcp-server.js';

const stdio = { name: 'desk', transport: 'stdio', command: 'x' };
const http = { name: 'desk', transport: 'http', url: 'https://host/mcp' };

const define = (options: object): unknown => mcpServer(options as McpServerOptions);

describe('mcpServer', () => {
  test('fills in the defaults', () => {
    expect(define(stdio)).toEqual({
      ...stdio,
      allowTools: null,
      denyTools: [],
      effects: {},
      timeoutMs: 120_000,
      connectMs: 30_000,
      startup: 'strict',
      trust: 'first_use',
    });
  });

  test.each([
    [{ ...stdio, name: 'a__b' }, 'name: expected 1 to 32 letters, digits, "-" and single "_"'],
    [{ ...stdio, name: '_a' }, 'MCP server "_a": name: expected 1 to 32 letters'],
    [{ ...stdio, transport: 'sse' }, /expected "stdio" \(.+\) or "http" \(.+\), got "sse"/],
    [
      { ...stdio, command: '' },
      'command: expected a program, got ""; its arguments go into `args`',
    ],
    [{ ...stdio, url: 'https://x' }, '"url" is not an option; the options are name'],
    [{ ...stdio, alowTools: [] }, '"alowTools" is not an option; did you mean allowTools?'],
    [{ ...stdio, env: { A: 'b' } }, 'env: expected a list of names of environment variables'],
    [{ ...stdio, env: ['A=b'] }, 'env: expected a list of names of environment variables'],
    [
      { ...stdio, effects: { a: 'write' } },
      'effects.a: expected one of "read"|"keyed"|"once", got',
    ],
    [{ ...stdio, allowTools: 'a' }, 'allowTools: expected array, got a text'],
    [{ ...stdio, timeout: 0 }, 'timeout: expected a whole number of ms or words such as'],
    [{ ...stdio, startup: 'lazy' }, 'startup: expected one of "strict"|"best_effort", got "lazy"'],
    [{ ...http, url: 'host/mcp' }, 'url: expected an http(s) address; write for example'],
    [
      { ...http, url: 'https://me:secret@host/mcp' },
      'expected an address without a name or password',
    ],
    [{ ...http, authEnv: 'sk-123' }, 'authEnv: expected the name of an environment variable'],
    [{ ...http, headersEnv: { 'X-Key': 'a b' } }, 'headersEnv: expected headers with the names'],
    [
      { ...http, url: 'http://host/mcp', authEnv: 'KEY' },
      'url: expected https, because keys are not',
    ],
  ])('refuses %j and names the fix', (options, message) => {
    expect(() => define(options)).toThrow(message);
  });

  test('never repeats a possible secret', () => {
    expect(() => define({ ...http, authEnv: 'sk-123-canary' })).toThrow(/^(?!.*canary)/s);
    expect(() => define({ ...stdio, env: ['KEY=canary'] })).toThrow(/^(?!.*canary)/s);
    expect(() => define({ ...http, url: 'https://me:canary@host/mcp' })).toThrow(/^(?!.*canary)/s);
  });
});

describe('the servers of an agent', () => {
  const agent = (mcp: readonly unknown[]): unknown =>
    defineAgent({ name: 'a', instructions: 'x', mcp: mcp as never });

  test('are made by mcpServer, each with its own name', () => {
    const server = mcpServer({ name: 'desk', transport: 'stdio', command: 'x' });
    expect(() => agent([stdio])).toThrow(
      /mcp\[0\]: expected an MCP server; make it with mcpServer\({…}\)$/,
    );
    expect(() => agent([server, server])).toThrow(
      'mcp: expected different names, got "desk" twice; rename one',
    );
  });
});
