import { isContinuation } from '../utf8.js';

const NEWLINE = 10;

/** The lines that a window includes. */
export interface WindowLimits {
  /** The first line, from 1. */
  readonly from: number;
  readonly maxLines: number;
  /**
   * The size after which no further line is included; the first line is included even if it is
   * longer.
   */
  readonly maxBytes: number;
  /** The maximum number of bytes kept of the first line. */
  readonly maxLineBytes: number;
}

/** Some lines of a text. */
export interface LineWindow {
  readonly bytes: Buffer;
  /** The number of lines in the window. */
  readonly lines: number;
  /** The number of lines in all chunks. */
  readonly total: number;
  /** The bytes that are missing from the only line of the window. */
  readonly omittedBytes: number;
}

/**
 * Collects some whole lines of a stream of bytes and counts all lines, including a last one without
 * a newline. If the total does not matter, add chunks until `isFull`.
 */
export function lineWindow(limits: WindowLimits): {
  add(chunk: Buffer): void;
  isFull(): boolean;
  result(): LineWindow;
} {
  const included: Buffer[] = [];
  let current: Buffer[] = [];
  let keptBytes = 0;
  let currentBytes = 0;
  let lines = 0;
  let line = 1;
  let isMidLine = false;
  let isFull = false;

  const takePart = (part: Buffer): void => {
    currentBytes += part.length;
    if (lines > 0 && keptBytes + currentBytes > limits.maxBytes) isFull = true;
    // One extra byte shows whether a character continues there.
    else if (currentBytes - part.length <= limits.maxLineBytes) current.push(part);
  };
  const endLine = (): void => {
    if (isFull) return;
    included.push(...current);
    keptBytes += currentBytes;
    lines += 1;
    current = [];
    currentBytes = 0;
    isFull = lines >= limits.maxLines;
  };
  return {
    add: (chunk) => {
      for (let at = 0; at < chunk.length;) {
        const newline = chunk.indexOf(NEWLINE, at);
        const end = newline === -1 ? chunk.length : newline + 1;
        const isInWindow = line >= limits.from && !isFull;
        if (isInWindow) takePart(chunk.subarray(at, end));
        isMidLine = newline === -1;
        if (!isMidLine) {
          if (isInWindow) endLine();
          line += 1;
        }
        at = end;
      }
    },
    isFull: () => isFull,
    result: () => {
      if (currentBytes > 0) endLine();
      const all = Buffer.concat(included);
      const bytes = lines === 1 ? characterHead(all, limits.maxLineBytes) : all;
      return {
        bytes,
        lines,
        total: isMidLine ? line : line - 1,
        omittedBytes: keptBytes - bytes.length,
      };
    },
  };
}

/** Returns at most `maxBytes` from the start, cut between characters. */
function characterHead(bytes: Buffer, maxBytes: number): Buffer {
  let end = Math.min(maxBytes, bytes.length);
  while (end > 0 && isContinuation(bytes[end])) end -= 1;
  return bytes.subarray(0, end);
}
