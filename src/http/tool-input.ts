import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { describeIssues } from '../validation/check-options.js';
import { failedResult } from './mcp-tools.js';

/**
 * Lets an MCP server refuse arguments that do not fit a tool's schema as it refuses others: it names the
 * field, the value, and what was expected. The SDK would give the issues as JSON, without a code.
 */
export function refuseInOwnWords(server: McpServer): void {
  Object.defineProperties(server, {
    createToolError: { value: (message: string) => failedResult(message, 'input') },
    validateToolInput: {
      value: async ({ inputSchema: schema }: { readonly inputSchema?: unknown }, given: unknown) =>
        schema instanceof z.ZodObject ? parsedInput(schema, given ?? {}) : undefined,
    },
  });
}

function parsedInput(schema: z.ZodObject, given: unknown): unknown {
  const { data, error } = schema.safeParse(given);
  if (error === undefined) return data;
  const known = Object.keys(schema.shape);
  const lines = describeIssues(error.issues, given, {
    root: 'the arguments',
    keys: {
      known,
      unrecognized: (keys, _, meant) =>
        `${keys}: expected one of the fields ${known.join(', ')}; ${meant === undefined ? 'omit it' : `did you mean ${meant}?`}`,
    },
  });
  const [first = '', ...others] = lines.map((line) => withHint(line.slice(2), schema));
  throw new InputError([first, ...others].join('\n'));
}

/** Adds what a missing field is, which says what to give. */
function withHint(line: string, { shape }: z.ZodObject): string {
  const [, field = ''] = /^(\w+): missing, /.exec(line) ?? [];
  const described: unknown = Object.hasOwn(shape, field) ? shape[field] : undefined;
  const text = described instanceof z.ZodType ? described.description : undefined;
  return text === undefined ? line : `${line}; give ${text}`;
}
