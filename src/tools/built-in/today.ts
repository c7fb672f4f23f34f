import { z } from 'zod';
import { InputError } from '../../core/errors.js';
import { checkOptions } from '../../validation/check-options.js';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool } from '../tool.js';

const todayOptions = z.strictObject({ timeZone: z.string().optional() });

/**
 * Makes a tool that returns the current date and time; the prompt contains no time, because it
 * would change with every call. `timeZone` is an IANA name; default: the worker's. Throws an
 * `InputError` if it is unknown.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { today } from 'perdure/tools';
 *
 * export const planner = defineAgent({
 *   name: 'planner',
 *   instructions: 'Plan the week.',
 *   tools: [today({ timeZone: 'Europe/Berlin' })],
 * });
 * ```
 */
export function today(options: { readonly timeZone?: string } = {}): Tool {
  checkOptions('today', { schema: todayOptions, options });
  const standard = options.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const wrong = zoneProblem(standard);
  if (wrong !== null) throw new InputError(`today: ${wrong}`);
  return defineTool({
    name: 'today',
    description: `The current date and time, in ${standard} unless a time zone is given.`,
    effect: 'read',
    repeat: 'allow',
    input: z.object({
      timeZone: z.string().optional().describe('IANA name, such as Europe/Berlin'),
    }),
    execute: ({ timeZone = standard }) => {
      const problem = zoneProblem(timeZone);
      if (problem !== null) throw new ToolError(problem);
      return dateIn(timeZone, new Date());
    },
  });
}

/** Formats a time such as `Saturday 2026-11-21 17:05 in Europe/Berlin (GMT+01:00)`. */
function dateIn(timeZone: string, at: Date): string {
  const parts = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    weekday: 'long',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'longOffset',
  }).formatToParts(at);
  const of = (type: Intl.DateTimeFormatPartTypes): string =>
    parts.find((part) => part.type === type)?.value ?? '';
  const date = `${of('year')}-${of('month')}-${of('day')}`;
  const offset = of('timeZoneName') === 'GMT' ? 'GMT+00:00' : of('timeZoneName');
  return `${of('weekday')} ${date} ${of('hour')}:${of('minute')} in ${timeZone} (${offset})`;
}

function zoneProblem(timeZone: string): string | null {
  try {
    Intl.DateTimeFormat('en', { timeZone });
    return null;
  } catch {
    return `time zone ${JSON.stringify(timeZone)} is unknown; give an IANA name such as Europe/Berlin`;
  }
}
