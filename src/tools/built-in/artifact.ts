import { types } from 'node:util';
import { describeValue } from '../../core/state/summaries.js';
import type { Json } from '../../core/text/json.js';
import { detectMediaType, wellFormed } from '../../core/text/text.js';
import { redact, redactJsonText } from '../../secrets/redact.js';
import { ToolError } from '../errors.js';
import { collect, isAsyncIterable } from '../result/normalize.js';
import { headBytes, toWholePlain } from '../result/plain.js';

/** The same in every copy of the package that a worker may have loaded. */
const ARTIFACT: unique symbol = Symbol.for('perdure.artifact');
const NAME = /^[a-z0-9_-]{1,64}$/;
const MAX_SUMMARY_CHARACTERS = 300;
/** Leaves room for the ending of a default name. */
const TOOL_CHARACTERS = 48;

/** A value returned by `artifact`. */
export interface ArtifactResult<Value = unknown> {
  readonly [ARTIFACT]: true;
  readonly value: Value;
  /** As in `ArtifactOptions`. */
  readonly name?: string;
  /** As in `ArtifactOptions`. */
  readonly summary?: string;
  /** Returns the note that stands for an artifact inside another value. */
  toJSON(): string;
}

/** Options of `artifact`. */
export interface ArtifactOptions {
  /**
   * The name by which the model passes the artifact on: 1 to 64 of a–z, 0–9, `_` and `-`; default:
   * the tool's name with `_result`. Values never change: if another value has the name, a number is
   * appended.
   */
  readonly name?: string;
  /**
   * A line of at most 300 characters for the model: what the value is, in addition to its shape.
   * Default: none.
   */
  readonly summary?: string;
}

/**
 * Makes a tool's result an artifact: the whole value goes to the blob store, whatever its size, and
 * the model reads its name, its shape, and its start. A later call whose arguments contain the name
 * gets the value with `context.artifacts.get(name)`. The artifact lives as long as the run.
 *
 * The value becomes JSON (dates as text, maps as objects); a string stays a string. Throws a
 * `ToolError` if the name is invalid, which the model may have chosen, or if the value is undefined
 * or a promise.
 *
 * @example
 * ```ts
 * import { defineTool } from 'perdure';
 * import { artifact } from 'perdure/tools';
 * import { z } from 'zod';
 *
 * export const listOrders = defineTool({
 *   name: 'list_orders',
 *   description: 'Loads the orders of a month.',
 *   effect: 'read',
 *   input: z.object({ month: z.string() }),
 *   execute: ({ month }) =>
 *     artifact([{ id: 'A1', month }], { name: `orders_${month}`, summary: 'all orders of the month' }),
 * });
 * ```
 */
export function artifact<Value>(
  value: Value,
  options: ArtifactOptions = {},
): ArtifactResult<Value> {
  const { name, summary } = options;
  if (name !== undefined && (typeof name !== 'string' || !NAME.test(name))) {
    throw new ToolError(
      `artifact: name: expected 1 to 64 of a-z, 0-9, "_" and "-", got ${JSON.stringify(name)?.slice(0, 100)}`,
    );
  }
  if (summary !== undefined && typeof summary !== 'string') {
    throw new ToolError(`artifact: summary: expected a string, got ${typeof summary}`);
  }
  const fault = faultOf(value);
  if (fault !== null) throw new ToolError(`artifact: ${fault}`);
  const line = summary === undefined ? '' : lineOf(summary);
  return {
    [ARTIFACT]: true,
    value,
    ...(name !== undefined && { name }),
    ...(line !== '' && { summary: line }),
    toJSON: () => '[an artifact has to be the whole result of a tool]',
  };
}

/** Redacts before truncating, so not even the start of a secret remains. */
function lineOf(summary: string): string {
  const line = redact(summary).replaceAll(/\s+/g, ' ').trim();
  return wellFormed(line.slice(0, MAX_SUMMARY_CHARACTERS));
}

/** Recognizes artifacts of every copy of the package that a project may have. */
export function isArtifact(value: unknown): value is ArtifactResult {
  return typeof value === 'object' && value !== null && ARTIFACT in value;
}

/** Returns the default name of an artifact of this tool. */
export function defaultArtifactName(tool: string): string {
  return `${tool.toLowerCase().slice(0, TOOL_CHARACTERS)}_result`;
}

function faultOf(value: unknown): string | null {
  if (value === undefined) return 'expected a value, got undefined; return one, or nothing at all';
  if (types.isPromise(value)) return 'the value is a promise; await it first';
  return isArtifact(value) ? 'the value is an artifact already; return that one' : null;
}

/** The same in every copy of the package that a worker may have loaded. */
const SCREENSHOT: unique symbol = Symbol.for('perdure.screenshot');

/** The limit is low because every later request sends the picture again. */
const MAX_BYTES = 4 * 1024 * 1024;
const DATA_URL = /^data:image\/[\w.+-]+;base64,([A-Za-z0-9+/]+={0,2})$/;

/** A picture returned by `screenshot`. */
export interface Screenshot {
  readonly [SCREENSHOT]: true;
  readonly base64: string;
  readonly mediaType: string;
  /** The size of the picture, not of its base64 form. */
  readonly bytes: number;
  /** A text for the model that accompanies the picture, or empty. */
  readonly text: string;
  /** Returns the note that stands for a screenshot inside another value. */
  toJSON(): string;
}

/**
 * Makes a picture the result of a tool that operates a screen. The picture (PNG, JPEG, GIF, or
 * WebP, at most 4 MiB, as bytes or as a `data:` URL) goes to the blob store; history and transcript
 * contain a line about it. Models see it if the tool is the `handler` of their computer use. Throws
 * a `ToolError` if the value is not such a picture.
 *
 * @example
 * ```ts
 * import { readFile } from 'node:fs/promises';
 * import { defineTool } from 'perdure';
 * import { screenshot } from 'perdure/tools';
 * import { z } from 'zod';
 *
 * export const look = defineTool({
 *   name: 'look',
 *   description: 'Shows the screen.',
 *   effect: 'read',
 *   input: z.object({}),
 *   execute: async () => screenshot(await readFile('screen.png')),
 * });
 * ```
 */
export function screenshot(
  picture: Uint8Array | string,
  { text = '' }: { readonly text?: string } = {},
): Screenshot {
  const bytes = typeof picture === 'string' ? decoded(picture) : picture;
  const mediaType = detectMediaType(bytes);
  if (mediaType === null || !mediaType.startsWith('image/')) {
    throw new ToolError('screenshot: expected a PNG, JPEG, GIF, or WebP, got something else');
  }
  if (bytes.length > MAX_BYTES) {
    throw new ToolError(
      `screenshot: expected at most ${MAX_BYTES} bytes, got ${bytes.length}; make it smaller, or a JPEG`,
    );
  }
  return {
    [SCREENSHOT]: true,
    base64: Buffer.from(bytes).toString('base64'),
    mediaType,
    bytes: bytes.length,
    text,
    toJSON: () => '[a screenshot has to be the whole result of a tool]',
  };
}

/** Recognizes screenshots of every copy of the package that a project may have. */
export function isScreenshot(value: unknown): value is Screenshot {
  return typeof value === 'object' && value !== null && SCREENSHOT in value;
}

function decoded(url: string): Uint8Array {
  const base64 = DATA_URL.exec(url)?.[1];
  if (base64 !== undefined) return Buffer.from(base64, 'base64');
  throw new ToolError(
    'screenshot: expected bytes, or a text that begins with data:image/png;base64,',
  );
}

const HEAD_BYTES = 500;
const KIND_CHARACTERS = 200;

/** A value in the form in which an artifact stores it. */
interface ArtifactValue {
  readonly content: string;
  readonly isText: boolean;
  /** A one-line description of the value, for the model. */
  readonly kind: string;
  /** The start of the value, for the model. */
  readonly head: string;
}

/**
 * Serializes a value completely; a stream is read first. Secrets are redacted, as in every result.
 * Returns a problem with its fix if part of the value would be lost.
 */
export async function artifactValue(
  value: unknown,
  options: { readonly signal?: AbortSignal } = {},
): Promise<ArtifactValue | { readonly problem: string }> {
  const read = isAsyncIterable(value) ? await collect(value, options.signal) : value;
  const whole = toWholePlain(read);
  if ('lost' in whole) {
    return {
      problem:
        `the value holds ${whole.lost}, which an artifact cannot store; give plain data, bytes as ` +
        'base64 text, or write a file and give its path',
    };
  }
  const { plain } = whole;
  const isText = typeof plain === 'string';
  const content = wellFormed(isText ? redact(plain) : redactJsonText(JSON.stringify(plain)));
  return { content, isText, kind: kindOf(plain), head: headBytes(content, HEAD_BYTES) };
}

/** Describes a value in one line, such as `array of 300 objects, the first with keys id, euros`. */
export function kindOf(value: Json): string {
  return wellFormed(redact(describeValue(value)).slice(0, KIND_CHARACTERS));
}
