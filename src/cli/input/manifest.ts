import { readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { visible } from '../../core/state/summaries.js';
import { isObject } from '../../core/text/json.js';
import { show } from '../../core/text/text.js';
import { UsageError } from '../context.js';

const NAME = 'package.json';

/** A package.json that Node cannot read, so no module below its folder can be loaded. */
export class BrokenManifestError extends UsageError {}

/**
 * Reads the package.json of a folder; null if it has none. Throws a `BrokenManifestError` that names
 * the file, the place of the fault, and the fix.
 */
export async function readManifest(folder: string): Promise<Record<string, unknown> | null> {
  const path = join(folder, NAME);
  const name = visible(relative(process.cwd(), path));
  let value: unknown;
  let text = '';
  try {
    text = await readFile(path, 'utf8');
    // Some editors write a byte order mark.
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    const reason = error instanceof Error ? error.message : String(error);
    const [expected, fix] =
      error instanceof SyntaxError
        ? ['JSON', 'correct it there']
        : ['a readable file', 'make it readable'];
    throw new BrokenManifestError(
      `${name}: expected ${expected}, got an error: ${visible(withLine(reason, text))}; ${fix}, or delete the file`,
      { cause: error },
    );
  }
  if (isObject(value)) return value;
  throw new BrokenManifestError(
    `${name}: expected a JSON object, got ${show(value)}; correct it, or delete the file`,
  );
}

/** Throws a `BrokenManifestError` if the package.json that applies to a file cannot be read. */
export async function assertManifest(file: string): Promise<void> {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if ((await readManifest(folder)) !== null || folder === dirname(folder)) return;
  }
}

/** Adds the line and the column to the message of Node 20, which has only the position. */
function withLine(message: string, text: string): string {
  const [, position] = /at position (\d+)$/.exec(message) ?? [];
  if (position === undefined) return message;
  const before = text.slice(0, Number(position)).split('\n');
  return `${message} (line ${before.length} column ${(before.at(-1) ?? '').length + 1})`;
}
