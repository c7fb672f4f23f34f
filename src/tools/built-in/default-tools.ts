import { z } from 'zod';
import { InputError } from '../../core/errors.js';
import { isObject } from '../../core/text/json.js';
import type { BlobRef } from '../../core/transcript/messages.js';
import { BlobError, type BlobStore, readFor } from '../../storage/blob-store.js';
import { isOwned, readOwned } from '../../storage/owned-text.js';
import { type OptionSchemas, checkOptions, expected } from '../../validation/check-options.js';
import { defineTool } from '../define-tool.js';
import { ToolError, workflowOlder } from '../errors.js';
import { isContinuation } from '../result/plain.js';
import type { Tool } from '../tool.js';

/** Options of the tool `answer`. */
export interface AnswerOptions {
  /** The type of the answer; default: a string. The keys of an object are the tool's arguments. */
  readonly output?: z.ZodType;
}

const answerOptions = z.strictObject({
  output: expected('a zod type', (value) => isObject(value) && '_zod' in value).optional(),
} satisfies OptionSchemas<AnswerOptions>);

/**
 * Makes a tool that ends the turn with an answer: for agents with `toolChoice: 'required'`, and for
 * models that call tools better than they write. If the agent has an `output`, use the same schema
 * for both: the agent's types the outcome, and the answer must fit both. Throws an `InputError` if
 * an option is invalid.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { answer } from 'perdure/tools';
 * import { z } from 'zod';
 *
 * const city = z.object({ name: z.string(), people: z.int() });
 *
 * export const atlas = defineAgent({
 *   name: 'atlas',
 *   instructions: 'Find the city.',
 *   tools: [answer({ output: city })],
 *   toolChoice: 'required',
 *   output: city,
 * });
 * ```
 */
export function answer(options: AnswerOptions = {}): Tool {
  checkOptions('answer', { schema: answerOptions, options });
  const { output } = options;
  const common = {
    name: 'answer',
    description: 'Gives the answer and ends the work: for a question, a greeting, a result.',
    effect: 'read',
    ends: true,
  } as const;
  if (output instanceof z.ZodObject) {
    return defineTool({ ...common, input: output, execute: (value) => value });
  }
  const input = z.object({ answer: output ?? z.string().describe('the whole answer') });
  return defineTool({ ...common, input, execute: (given) => given.answer });
}

/**
 * Makes a tool that lists a run's artifacts: name, shape, size, and the call that made each one.
 * The workflow answers it from its state; it executes nothing and does not count as a tool call.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { listArtifacts, returnArtifact } from 'perdure/tools';
 *
 * export const analyst = defineAgent({
 *   name: 'analyst',
 *   instructions: 'Return the report that was made.',
 *   tools: [listArtifacts(), returnArtifact()],
 * });
 * ```
 */
export function listArtifacts(): Tool {
  const tool = defineTool({
    name: 'list_artifacts',
    description: 'Lists the artifacts that tools have stored, by the names to pass on.',
    effect: 'read',
    repeat: 'allow',
    input: z.object({}),
    execute: () => {
      throw workflowOlder('artifacts are listed by the workflow, not on a worker');
    },
  });
  return Object.freeze({ ...tool, kind: 'artifacts' as const });
}

/**
 * Makes a tool that ends the turn with an artifact: its value is the outcome's `output`, or, above
 * 64 KiB, the answer's head and tail with a reference to the whole value. For an unknown name the
 * call fails with a list of the artifacts, and the turn continues.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { returnArtifact } from 'perdure/tools';
 *
 * export const analyst = defineAgent({
 *   name: 'analyst',
 *   instructions: 'Make the report, then return it by its name.',
 *   tools: [returnArtifact()],
 * });
 * ```
 */
export function returnArtifact(): Tool {
  return defineTool({
    name: 'return_artifact',
    description:
      'Returns an artifact as the result and ends the work: for a requested table, file, or object, ' +
      'instead of writing it out.',
    effect: 'read',
    ends: true,
    input: z.object({ name: z.string().describe('the name of the artifact, exactly') }),
    describe: ({ name }) => `return artifact ${name}`,
    execute: async ({ name }, { artifacts }) => await artifacts.get(name),
  });
}

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

/**
 * Returns the standard tools of an agent that works with artifacts (`answer`, `list_artifacts`,
 * `return_artifact`, and `today`), then the given tools. A given tool replaces the standard tool of
 * the same name, so calling the function twice adds nothing.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { defaultTools, fileTools } from 'perdure/tools';
 *
 * export const analyst = defineAgent({
 *   name: 'analyst',
 *   instructions: 'Answer from the files.',
 *   tools: defaultTools(fileTools({ root: 'data' })),
 * });
 * ```
 */
export function defaultTools(tools: readonly Tool[] = []): readonly Tool[] {
  const given = new Set(tools.map(({ name }) => name));
  const standard = [answer(), listArtifacts(), returnArtifact(), today()];
  return [...standard.filter(({ name }) => !given.has(name)), ...tools];
}

const PAGE_BYTES = 32 * 1024;

/** Makes the built-in tool that pages through a text that was too large to show. */
export function readResultTool(store: BlobStore): Tool {
  return defineTool({
    name: 'read_result',
    description:
      'Reads a part of a text that was too large to show in full. The note where the text was cut ' +
      'has `ref` and `offset`; offsets and lengths are bytes.',
    effect: 'read',
    input: z.object({
      ref: z.string().describe('the 64 hex digits in the note where the text was cut'),
      offset: z.int().min(0).default(0).describe('first byte, from 0'),
      length: z.int().min(1).max(PAGE_BYTES).default(PAGE_BYTES).describe('bytes, at most 32768'),
    }),
    describe: ({ ref, offset }) => `read_result ${ref.slice(0, 8)}… from byte ${offset}`,
    execute: async ({ ref, offset, length }, { run }) => {
      const page = await readBlobPage(
        results(store, run.id),
        { sha256: ref },
        { offset, length },
      ).catch(explain);
      const end = page.nextOffset ?? page.totalBytes;
      const range = `[bytes ${page.offset} to ${end} of ${page.totalBytes}; `;
      const next = page.nextOffset === undefined ? 'the end]' : `next offset ${page.nextOffset}]`;
      return `${range}${next}\n${page.text}`;
    },
  });
}

/** Returns the store without message contents, so a model cannot read those of other runs. */
function results(store: BlobStore, run: string): Pick<BlobStore, 'get'> {
  return {
    async get(ref) {
      const text = await store.get(ref);
      if (!isOwned(text)) return text;
      const own = readOwned('artifact', run, text);
      if (own !== null) return own;
      throw new ToolError(
        'ref: expected the reference of a tool result; copy it from the note where one was cut',
      );
    },
  };
}

/** Converts a wrong reference to an error for the model; other store errors are retried. */
function explain(error: unknown): never {
  if (error instanceof BlobError && error.kind === 'invalid') {
    throw new ToolError(`${error.message}; copy it from the note where the text was cut`);
  }
  throw error;
}

/** A part of a stored text. All numbers are UTF-8 bytes of the whole text. */
interface BlobPage {
  readonly text: string;
  /** Where the page begins, never inside a character. */
  readonly offset: number;
  /** Where the next page begins; absent at the end. */
  readonly nextOffset?: number;
  readonly totalBytes: number;
}

/**
 * Reads at most `length` bytes from `offset`. Both ends move back to the start of a character, so
 * pages that follow `nextOffset` return each byte of the text once. A character larger than
 * `length` is returned whole.
 */
async function readBlobPage(
  store: Pick<BlobStore, 'get'>,
  ref: Pick<BlobRef, 'sha256'>,
  { offset, length }: { readonly offset: number; readonly length: number },
): Promise<BlobPage> {
  const bytes = Buffer.from(await readFor('a text that was too large to show', ref, store));
  const start = characterStart(bytes, Math.min(offset, bytes.length));
  const cut = characterStart(bytes, Math.min(start + length, bytes.length));
  const end = cut > start ? cut : characterEnd(bytes, start);
  return {
    text: bytes.toString('utf8', start, end),
    offset: start,
    ...(end < bytes.length && { nextOffset: end }),
    totalBytes: bytes.length,
  };
}

function characterStart(bytes: Buffer, position: number): number {
  let at = position;
  while (at > 0 && isContinuation(bytes[at])) at -= 1;
  return at;
}

function characterEnd(bytes: Buffer, position: number): number {
  let at = Math.min(position + 1, bytes.length);
  while (at < bytes.length && isContinuation(bytes[at])) at += 1;
  return at;
}
