import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toAgentDefinition } from '../../src/agents/agent-definition.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { canonicalJson, type Json } from '../../src/core/text/json.js';
import { wait } from '../../src/tools.js';
import { checkArguments } from '../../src/tools/arguments/check-arguments.js';
import { defineTool, describeCall } from '../../src/tools/define-tool.js';
import { toToolDefinition, type Tool } from '../../src/tools/tool.js';
import { callFailure } from './support.js';

async function problemOf(value: Parameters<typeof checkArguments>[1]): Promise<string> {
  const checked = await checkArguments(wait(), value);
  if (checked.ok) throw new Error('the arguments passed');
  return checked.problem.message;
}

function asJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

function hashWith(tool: Tool): string {
  const agent = defineAgent({ name: 'a', instructions: '', model: 'm', tools: [tool] });
  return toAgentDefinition(agent, { model: 'm', tools: [tool] }).hash;
}

describe('wait', () => {
  test('is a tool of its own kind, which the pinned definition and its hash show', () => {
    const tool = wait();
    const { kind, ...definition } = toToolDefinition(tool);
    expect(kind).toBe('wait');
    expect(definition).toMatchObject({ name: 'wait', effect: 'read', repeat: 'allow' });
    const { kind: _without, ...plain } = tool;
    expect(hashWith(plain)).not.toBe(hashWith(tool));
  });

  test('does not change the definition of any other tool', () => {
    const other = defineTool({
      name: 'wait',
      description: 'An own tool.',
      input: z.object({}),
      effect: 'read',
      execute: () => 'done',
    });
    expect(Object.keys(toToolDefinition(other))).not.toContain('kind');
    // The hashes of pinned definitions cover this text.
    expect(canonicalJson(asJson(toToolDefinition(other)))).toBe(
      '{"attempts":3,"description":"An own tool.","effect":"read","heartbeatMs":10000,' +
        '"name":"wait","parameters":{"additionalProperties":false,"properties":{},"type":"object"},' +
        '"timeoutMs":120000}',
    );
  });

  test('cannot be made by an author', () => {
    const options = { name: 'x', description: 'x', input: z.object({}), effect: 'read' };
    expect(() =>
      Reflect.apply(defineTool, undefined, [{ ...options, kind: 'wait', execute: () => 1 }]),
    ).toThrow('"kind" is not an option');
  });

  test('accepts a duration or a time', async () => {
    for (const value of [
      { seconds: 60 },
      { seconds: 0.5, reason: 'the build' },
      { until: '2027-03-28T09:00:00+02:00', reason: 'opening hours' },
    ]) {
      expect(await checkArguments(wait(), value)).toEqual({ ok: true, value });
    }
  });

  test('reports invalid arguments to the model', async () => {
    expect(await problemOf({})).toContain('- give exactly one of `seconds`');
    expect(await problemOf({ seconds: 1, until: '2027-03-28T09:00:00Z' })).toContain('exactly one');
    expect(await problemOf({ seconds: 0 })).toContain('must be a positive number');
    expect(await problemOf({ seconds: '60' })).toContain('seconds: expected number, got "60"');
    expect(await problemOf({ until: '2027-03-28T09:00' })).toContain('write 2027-03-28T09:00Z, or');
    expect(await problemOf({ seconds: 1, reason: 'x'.repeat(501) })).toContain('reason: ');
    expect(await problemOf({ minutes: 1 })).toContain('unknown argument "minutes"');
  });

  test('is described for people', async () => {
    expect(await describeCall(wait(), { seconds: 60 })).toBe('wait 60 s');
    expect(
      await describeCall(wait(), { until: '2027-03-28T09:00Z', reason: 'the bank\nopens' }),
    ).toBe('wait until 2027-03-28T09:00Z: the bank opens');
  });

  test('is never executed on a worker', async () => {
    const failure = await callFailure(wait(), { seconds: 1 });
    expect(failure.message).toContain('upgrade the workflow code: it is older than this tool');
  });
});
