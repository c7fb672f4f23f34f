import type { Context } from '@temporalio/activity';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { RunToolInput } from '../../src/core/run/contract.js';
import type { ActivityDependencies, PinnedAgent } from '../../src/activities/activity-context.js';
import { findMcpTool } from '../../src/activities/tool/mcp-tool.js';
import { prepareCall, type PreparedCall } from '../../src/activities/tool/prepare-call.js';
import type { Effect } from '../../src/core/definition/tool-definition.js';
import { sha256Hex, canonicalJson, type Json } from '../../src/core/text/json.js';
import { NoProtocolError } from '../../src/mcp/connection.js';
import { listedTool, usableTool } from '../../src/mcp/listed-tool.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createToolRegistry, toToolDefinition } from '../../src/tools/tool.js';
import { config } from '../support/scripts.js';
import type { ToolCall } from '../../src/core/transcript/messages.js';

const look = (rest: Partial<Parameters<typeof defineTool>[0]> = {}) =>
  defineTool({
    name: 'look',
    description: 'looks',
    input: z.object({ at: z.string() }),
    effect: 'read',
    execute: async () => 'seen',
    ...rest,
  });
const pinned = toToolDefinition(look());
const { definition } = config({ tools: [pinned] });

/** Prepares a call of the pinned tool on a worker whose tool is now `tool`. */
async function prepare(
  tool: ReturnType<typeof look> | null,
  args: unknown = { at: 'x' },
  { attempt = 1, ...rest }: Partial<ToolCall> & { readonly attempt?: number } = {},
): Promise<PreparedCall> {
  const tools = createToolRegistry(tool === null ? [] : [tool]);
  const found = { definition, tools, agent: undefined, current: false };
  const deps = { definitions: { find: async () => found } } as unknown as ActivityDependencies;
  const context = { info: { attempt } } as Context;
  const json = JSON.stringify(args);
  const written = { arguments: json, digest: sha256Hex(json) };
  const call = { id: 'call_1_1_0', name: 'look', ...written, ...rest };
  const input: RunToolInput = {
    definition: 'h',
    turn: 1,
    step: 1,
    call,
    effect: 'read',
    key: 'k',
  };
  return await prepareCall(deps, context, input);
}

describe('the arguments that were judged', () => {
  const parsed = (value: object) => {
    const json = canonicalJson(JSON.parse(JSON.stringify(value)) as Json);
    return { parsed: { arguments: json, digest: sha256Hex(json) } };
  };
  const taking = (at: z.ZodType): ReturnType<typeof look> => look({ input: z.object({ at }) });

  test('are executed as the tool parses them, with its own types', async () => {
    const dated = taking(z.string().transform((text) => new Date(text)));
    const at = '2026-01-01T00:00:00.000Z';
    const prepared = await prepare(dated, { at });
    expect(prepared).toMatchObject({ ok: true, value: { at: new Date(at) } });
    const short = await prepare(dated, { at: '2026' }, parsed({ at }));
    expect(short).toMatchObject({ ok: true, value: { at: new Date(at) } });
  });

  test('are executed even if the tool has another default now', async () => {
    const prepared = await prepare(taking(z.number().default(7)), {}, parsed({ at: 5 }));
    expect(prepared).toMatchObject({ ok: true, value: { at: 5 } });
  });

  test('are executed if the tool makes something else of them each time', async () => {
    let count = 0;
    const input = z.object({ at: z.string() }).transform((one) => ({ ...one, n: (count += 1) }));
    const counting = { ...look(), input: input as unknown as z.ZodObject };
    const prepared = await prepare(counting, { at: 'x' }, parsed({ at: 'x', n: 99 }));
    expect(prepared).toMatchObject({ ok: true, value: { at: 'x', n: 99 } });
  });

  test.each<[string, z.ZodType, object, Partial<ToolCall>]>([
    ['a conversion', z.coerce.number(), { at: '5' }, {}],
    ['a default', z.number().default(77_777), {}, {}],
    ['another unit', z.number().transform((n) => [n]), { at: 5 }, parsed({ at: 500 })],
  ])('are not executed after %s of which nobody was asked', async (_, at, args, rest) => {
    const current = { ...taking(at), parameters: pinned.parameters };
    const refusal = await prepare(current, args, rest);
    expect(refusal).toMatchObject({ ok: false, result: { ok: false } });
    expect(JSON.stringify(refusal)).toContain('It was not executed. Make the call again');
    // A node's call without a verdict is judged by the worker that executes it.
    expect(await prepare(current, args, { ...rest, node: 'n' })).toMatchObject({
      ok: rest.parsed === undefined,
    });
    // Unless a person saw it in a confirmed plan.
    const shown = await prepare(current, args, { ...rest, node: 'n', asShown: true });
    expect(shown).toMatchObject({ ok: false, result: { ok: false } });
  });
});

describe('a pinned tool on a worker with newer code', () => {
  test.each([
    ['description', { description: 'looks again' }],
    ['timeout', { timeout: 1 }],
    ['heartbeat', { heartbeat: 1_000 }],
    ['retry', { retry: { attempts: 9 } }],
    ['repeat', { repeat: 'allow' as const }],
    ['ends', { ends: true as const }],
    ['output', { output: z.number() }],
    ['describe', { describe: () => 'other words' }],
    [
      'input, by a further optional field',
      { input: z.object({ at: z.string(), by: z.string().optional() }) },
    ],
  ])('is called as pinned if it has another %s', async (_field, rest) => {
    const prepared = await prepare(look(rest));
    expect(prepared).toMatchObject({ ok: true, pinned, value: { at: 'x' } });
  });

  test.each([
    [
      'effect',
      look({ effect: 'keyed' }),
      'tool_changed',
      'was "read" when the run began and is "keyed"',
    ],
    ['stricter effect', look({ effect: 'once' }), 'tool_changed', 'is "once" now'],
    [
      'stricter input',
      look({ input: z.object({ at: z.enum(['y']) }) }),
      'tool_changed',
      'but not its current version',
    ],
    ['place: none', null, 'tool_missing', '"look"'],
  ])('blocks the run if it has another %s', async (_what, tool, type, message) => {
    await expect(prepare(tool)).rejects.toMatchObject({
      type,
      message: expect.stringContaining(message),
    });
  });

  test('refuses arguments that are invalid for both versions', async () => {
    expect(
      await prepare(look({ input: z.object({ where: z.string() }) }), { at: 7 }),
    ).toMatchObject({
      ok: false,
      result: { ok: false, text: expect.stringContaining('invalid_arguments') },
    });
  });
});

describe('a pinned tool of an MCP server', () => {
  const served = (effects: Record<string, Effect>) =>
    mcpServer({ name: 'files', transport: 'stdio', command: 'none', effects });
  const listed = listedTool({ name: 'look', inputSchema: { type: 'object' } });
  if (listed === null) throw new Error('no tool');
  const first = usableTool(served({ look: 'read' }), listed);
  if (!first.ok) throw new Error(first.problem);
  const mcpCall = { pinned: first.definition, accepted: undefined, resolve: '' };
  const session = { listing: async () => ({ tools: [listed], odd: [] }) };
  const deps = { mcp: { of: () => session } } as unknown as ActivityDependencies;
  const found = async (effects: Record<string, Effect>) => {
    const agent = { definition, agent: { mcp: [served(effects)] } };
    return await findMcpTool(deps, agent as unknown as PinnedAgent, mcpCall);
  };

  test('blocks the run if the worker now gives it another effect, even if its server is unchanged', async () => {
    expect(await found({ look: 'read' })).toMatchObject({ ok: true });
    expect(await found({})).toMatchObject({
      ok: false,
      reason: 'tool_changed',
      message: expect.stringContaining('is "once" now'),
    });
  });

  test('is looked for again if its server has only written what is not the protocol', async () => {
    const listing = async () =>
      Promise.reject(new NoProtocolError('it writes a banner', 'check it'));
    const late = { mcp: { of: () => ({ listing }) } } as unknown as ActivityDependencies;
    const agent = { definition, agent: { mcp: [served({})] } } as unknown as PinnedAgent;
    await expect(findMcpTool(late, agent, mcpCall)).rejects.toThrow('it writes a banner');
  });
});
