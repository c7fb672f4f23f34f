import { isContinuation } from '../utf8.js';

const NEWLINE = 10;

export interface WindowLimits {
  /** First line wanted, from 1. */
  readonly from: number;
  readonly maxLines: number;
  /** Bytes after which no further line is begun; the first line is taken even when it is longer. */
  readonly maxBytes: number;
  /** Bytes that are kept of a first line that is longer still. */
  readonly maxLineBytes: number;
}

export interface LineWindow {
  readonly bytes: Buffer;
  /** Lines in the window. */
  readonly lines: number;
  /** Lines in all, as far as the chunks went. */
  readonly total: number;
  /** Bytes that were left out of the only line of the window. */
  readonly omittedBytes: number;
}

/**
 * Takes some whole lines out of a stream of bytes and counts all lines. A last line without a newline
 * counts. Give it chunks until `isFull` when the total does not matter.
 */
export function lineWindow(limits: WindowLimits): {
  add(chunk: Buffer): void;
  isFull(): boolean;
  result(): LineWindow;
} {
  const kept: Buffer[] = [];
  let current: Buffer[] = [];
  let keptBytes = 0;
  let currentBytes = 0;
  let lines = 0;
  let line = 1;
  let isMidLine = false;
  let isFull = false;

  const takePiece = (piece: Buffer): void => {
    currentBytes += piece.length;
    if (lines > 0 && keptBytes + currentBytes > limits.maxBytes) isFull = true;
    // A byte more than is kept shows whether a character goes on there.
    else if (currentBytes - piece.length <= limits.maxLineBytes) current.push(piece);
  };
  const endLine = (): void => {
    if (isFull) return;
    kept.push(...current);
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
        const isWanted = line >= limits.from && !isFull;
        if (isWanted) takePiece(chunk.subarray(at, end));
        isMidLine = newline === -1;
        if (!isMidLine) {
          if (isWanted) endLine();
          line += 1;
        }
        at = end;
      }
    },
    isFull: () => isFull,
    result: () => {
      if (currentBytes > 0) endLine();
      const all = Buffer.concat(kept);
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

/** At most `maxBytes` from the start, without half a character at the end. */
function characterHead(bytes: Buffer, maxBytes: number): Buffer {
  let end = Math.min(maxBytes, bytes.length);
  while (end > 0 && isContinuation(bytes[end])) end -= 1;
  return bytes.subarray(0, end);
}
