import { detectMediaType } from '../../core/text/media-type.js';
import { ToolError } from '../tool-error.js';

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
