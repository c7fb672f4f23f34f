import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Json } from '../../src/core/text/json.js';
import { checkArguments } from '../../src/tools/arguments/check-arguments.js';
import { defineTool, describeCall } from '../../src/tools/define-tool.js';
import type { Tool } from '../../src/tools/tool.js';

function toolWith(input: z.ZodObject, describeInput?: (input: unknown) => string): Tool {
  return defineTool({
    name: 'refund',
    description: 'Pays money back.',
    effect: 'keyed',
    input,
    execute: () => 'done',
    ...(describeInput && { describe: describeInput }),
  });
}

async function messageFor(input: z.ZodObject, value: Json): Promise<string> {
  const checked = await checkArguments(toolWith(input), value);
  if (checked.ok) throw new Error(`accepted as ${JSON.stringify(checked.value)}`);
  expect(checked.problem.type).toBe('invalid_arguments');
  return checked.problem.message;
}

const refund = z.object({
  order: z.string().min(3),
  cents: z.int().min(1),
  reason: z.enum(['broken', 'late']).optional(),
  items: z.array(z.object({ sku: z.string() })).optional(),
});

describe('checkArguments', () => {
  it('returns the value for execute with defaults and transforms applied', async () => {
    const input = z.object({ id: z.string().transform(Number), size: z.number().default(5) });
    expect(await checkArguments(toolWith(input), { id: '7' })).toEqual({
      ok: true,
      value: { id: 7, size: 5 },
    });
  });

  it('names the path, what was expected, and what was received for each fault', async () => {
    const value = { order: 17, cents: 1.5, reason: 'bored', items: [{ sku: 'a' }, { sku: null }] };
    expect(await messageFor(refund, value)).toBe(
      [
        'The arguments of refund are not valid:',
        '- order: expected string, got 17',
        '- cents: expected int, got 1.5',
        '- reason: expected one of "broken"|"late", got "bored"',
        '- items[1].sku: expected string, got null',
      ].join('\n'),
    );
  });

  it('names missing arguments', async () => {
    expect(await messageFor(refund, { order: 'A17' })).toContain(
      '- cents: missing, expected number',
    );
  });

  it('lists the existing arguments, nearest first, if one does not exist', async () => {
    expect(await messageFor(refund, { order: 'A17', cents: 5, reasons: 'late' })).toContain(
      '- unknown argument "reasons"; expected one of reason, cents, items, order',
    );
    expect(await messageFor(z.object({}), { x: 1 })).toContain(
      'unknown argument "x"; refund has none',
    );
    const nested = z.object({ to: z.strictObject({ name: z.string() }) });
    expect(await messageFor(nested, { to: { name: 'x', mail: 'y' } })).toContain(
      '- to: unknown field "mail"',
    );
  });

  it('describes each alternative of a union', async () => {
    const input = z.object({
      to: z.union([z.object({ mail: z.string() }), z.object({ phone: z.string() })]),
    });
    expect(await messageFor(input, { to: { fax: 1 } })).toContain(
      '- to: fits none of the alternatives (mail expected string, or phone expected string), got {"fax":1}',
    );
    const tagged = z.object({
      on: z.discriminatedUnion('kind', [z.object({ kind: z.literal('day') })]),
    });
    expect(await messageFor(tagged, { on: { kind: 'week' } })).toContain('on.kind');
  });

  it('stays short whatever it received', async () => {
    const long = await messageFor(refund, { order: ['x'.repeat(1e6)], cents: 1 });
    expect(Buffer.byteLength(long)).toBeLessThan(300);
    const many = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`field${index}`, z.string()]),
    );
    const message = await messageFor(z.object(many), {});
    expect(message.split('\n')).toHaveLength(12);
    expect(message).toContain('- and 90 more');
  });

  it('shows the message of a refinement', async () => {
    const input = z.object({ cents: z.number().refine((cents) => cents <= 500, 'at most 5 €') });
    expect(await messageFor(input, { cents: 900 })).toContain('- cents: at most 5 €, got 900');
  });

  it('reports a refinement that throws or rejects', async () => {
    const throwing = z.object({
      order: z.string().refine(() => {
        throw new Error('no database');
      }),
    });
    expect(await messageFor(throwing, { order: 'A17' })).toBe(
      'The arguments of refund could not be checked: no database',
    );
    const rejecting = z.object({
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what users may do
      order: z.string().refine(() => Promise.reject('no database')),
    });
    expect(await messageFor(rejecting, { order: 'A17' })).toContain('no database');
  });

  it('does not wait for a refinement that hangs', async () => {
    const input = z.object({ order: z.string().refine(() => new Promise<boolean>(() => {})) });
    const checked = await checkArguments(toolWith(input), { order: 'A17' }, { limitMs: 20 });
    expect(checked).toMatchObject({
      ok: false,
      problem: {
        message: 'The arguments of refund could not be checked: it did not finish within 0.02 s',
      },
    });
  });
});

describe('describeCall', () => {
  const input = z.object({ cents: z.number() });

  it("returns the tool's description", async () => {
    const tool = toolWith(input, (value) => `refund ${JSON.stringify(value)}`);
    expect(await describeCall(tool, { cents: 4 })).toBe('refund {"cents":4}');
  });

  it('returns undefined if the tool has no description or fails', async () => {
    expect(await describeCall(toolWith(input), { cents: 4 })).toBeUndefined();
    const failing = toolWith(input, () => {
      throw new Error('no');
    });
    expect(await describeCall(failing, { cents: 4 })).toBeUndefined();
    const wrong = toolWith(input, () => JSON.parse('7'));
    expect(await describeCall(wrong, { cents: 4 })).toBeUndefined();
    expect(
      await describeCall(
        toolWith(input, () => '\n'),
        { cents: 4 },
      ),
    ).toBeUndefined();
  });

  it('is one line of at most 200 bytes without control characters', async () => {
    const tool = toolWith(input, () => `pay\u001b[2J\n\u202eevil ${'é'.repeat(500)}`);
    const line = (await describeCall(tool, {})) ?? '';
    expect(line.startsWith('pay [2J evil é')).toBe(true);
    expect(Buffer.byteLength(line)).toBeLessThanOrEqual(200);
    expect(line.endsWith('é…')).toBe(true);
  });
});
