import { detectMediaType } from '../../core/text/media-type.js';
import { ToolError } from '../tool-error.js';

/** The same in every copy of the package that a worker may have loaded. */
const SCREENSHOT: unique symbol = Symbol.for('perdure.screenshot');

/** A picture goes out again with every later request. */
const MOST_BYTES = 4 * 1024 * 1024;
const DATA_URL = /^data:image\/[\w.+-]+;base64,([A-Za-z0-9+/]+={0,2})$/;

/** What `screenshot` makes of a picture. */
export interface Screenshot {
  readonly [SCREENSHOT]: true;
  /** As it is kept. */
  readonly base64: string;
  readonly mediaType: string;
  /** Of the picture. */
  readonly bytes: number;
  /** For the model, beside the picture. */
  readonly text: string;
  /** Called only where it lies inside another value, in whose place a note then stands. */
  toJSON(): string;
}

/**
 * Returned by a tool that acts on a screen, shows the model how the screen looks now. The picture (PNG,
 * JPEG, GIF or WebP, at most 4 MiB; bytes, or a `data:` URL) goes to the blob store, history and
 * transcript have a line that says so. Models see it where the tool is the `handler` of their computer
 * use. Throws a `ToolError` for what is no such picture.
 */
export function screenshot(
  picture: Uint8Array | string,
  { text = '' }: { readonly text?: string } = {},
): Screenshot {
  const bytes = typeof picture === 'string' ? decoded(picture) : picture;
  const mediaType = detectMediaType(bytes);
  if (mediaType === null || !mediaType.startsWith('image/')) {
    throw new ToolError('screenshot: that is no PNG, JPEG, GIF or WebP');
  }
  if (bytes.length > MOST_BYTES) {
    throw new ToolError(
      `screenshot: ${bytes.length} bytes are more than ${MOST_BYTES}; make it smaller, or a JPEG`,
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

/** By the mark, not by the class: a project may have the package twice. */
export function isScreenshot(value: unknown): value is Screenshot {
  return typeof value === 'object' && value !== null && SCREENSHOT in value;
}

function decoded(url: string): Uint8Array {
  const base64 = DATA_URL.exec(url)?.[1];
  if (base64 !== undefined) return Buffer.from(base64, 'base64');
  throw new ToolError('screenshot: give bytes, or a text that begins with data:image/png;base64,');
}
