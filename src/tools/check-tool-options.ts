import { z } from 'zod';
import { isObject } from '../core/json.js';
import {
  anyFunction,
  checkOptions,
  expected,
  type OptionSchemas,
} from '../validation/check-options.js';
import { durableDuration, timerDuration } from '../validation/durations.js';
import type { ToolOptions } from './tool-options.js';

const MAX_SUMMARY_CHARACTERS = 200;
const MAX_ACTIONS = 20;

/** Options about an execution on a worker. */
const WORKER_OPTIONS = ['timeout', 'heartbeat', 'retry', 'verify', 'undo'] as const;

const catalogWord = z.string().min(1).max(64);

const toolOptions = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-zA-Z0-9_-]{1,64}$/, 'expected 1 to 64 letters, digits, "_" and "-"'),
    description: expected(
      'a text that tells the model what the tool does',
      (value) => typeof value === 'string' && value.trim() !== '',
    ),
    input: expected(
      'a z.object({…}) of zod 4, imported from "zod"; write the fields in z.object({ … })',
      isZodObject,
    ).refine(
      hasNoPrototypeField,
      'expected no field `__proto__`, which is refused in arguments; rename it',
    ),
    effect: z.enum(
      ['read', 'keyed', 'once'],
      'expected "read" (changes nothing), "keyed" (the destination honors the idempotency key) or ' +
        '"once" (must never happen twice); there is no default',
    ),
    output: expected('a zod schema', (value) => zodKind(value) !== undefined).optional(),
    approval: expected(
      '"never", "always" or a function',
      (value) => value === 'never' || value === 'always' || typeof value === 'function',
    ).optional(),
    timeout: timerDuration.optional(),
    heartbeat: timerDuration.optional(),
    retry: z.strictObject({ attempts: z.int().min(1).optional() }).optional(),
    ends: z.boolean().optional(),
    repeat: z.literal('allow').optional(),
    catalog: z
      .strictObject({
        summary: z.string().max(MAX_SUMMARY_CHARACTERS),
        category: catalogWord,
        actions: z.array(catalogWord).max(MAX_ACTIONS),
      })
      .optional(),
    describe: anyFunction.optional(),
    verify: anyFunction.optional(),
    failed: anyFunction.optional(),
    undo: anyFunction.optional(),
    undoWithin: durableDuration.optional(),
    expires: durableDuration.optional(),
    execute: anyFunction.optional(),
  } satisfies OptionSchemas<ToolOptions<z.ZodObject, z.ZodType>>)
  .refine(({ effect, verify }) => verify === undefined || effect === 'once', {
    path: ['verify'],
    error: 'expected only with effect "once"; other effects leave no outcome unknown',
  })
  .refine(({ effect, retry }) => effect !== 'once' || (retry?.attempts ?? 1) === 1, {
    path: ['retry', 'attempts'],
    error: 'expected 1 with effect "once"; omit it, or make the tool "keyed"',
  })
  .refine(({ effect, undo }) => undo === undefined || effect !== 'read', {
    path: ['undo'],
    error:
      'expected none with effect "read", which changes nothing; remove it, or correct `effect`',
  })
  .refine(({ undo, undoWithin }) => undoWithin === undefined || undo !== undefined, {
    path: ['undoWithin'],
    error: 'expected only with `undo`; add `undo`, or remove it',
  })
  .refine(({ expires, execute }) => expires === undefined || execute === undefined, {
    path: ['expires'],
    error:
      'expected only without `execute`, where the run waits for a result; remove it, or use `timeout`',
  })
  .superRefine((options, context) => {
    if (options.execute !== undefined) return;
    if ('execute' in options) {
      const message = 'expected a function; omit it only if the caller provides the result';
      context.addIssue({ code: 'custom', path: ['execute'], message });
    }
    for (const option of WORKER_OPTIONS) {
      if (options[option] === undefined) continue;
      const message =
        'expected none without `execute`: the worker executes nothing, and the result comes from ' +
        'the caller; remove it, or add `execute`';
      context.addIssue({ code: 'custom', path: [option], message });
    }
  });

/** Throws an `InputError` with a line for each fault in a tool's definition. */
export function assertToolOptions(options: unknown): void {
  checkOptions('tool', { schema: toolOptions, options });
}

/** Classes of zod/mini have no methods, so `strict` tells them apart. */
function isZodObject(value: unknown): value is z.ZodObject {
  return zodKind(value) === 'object' && typeof property(value, 'strict') === 'function';
}

function hasNoPrototypeField(value: unknown): boolean {
  const shape = property(value, 'shape');
  return !isObject(shape) || !Object.hasOwn(shape, '__proto__');
}

/** Another copy of zod may have made the schema, so `instanceof` is unreliable. */
function zodKind(value: unknown): string | undefined {
  const kind = property(property(property(value, '_zod'), 'def'), 'type');
  return typeof kind === 'string' ? kind : undefined;
}

function property(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined;
}
