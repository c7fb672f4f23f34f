import { MOST_MESSAGE_BYTES, textProblem, TOO_LONG } from './message-limits.js';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** The lines of a stream of bytes. */
export interface LineBuffer {
  append(chunk: Buffer): void;
  /** The next whole line without its end; null where none is there yet. */
  next(): string | null;
  clear(): void;
}

/**
 * Splits what a server writes into lines, in time proportional to what comes. Throws, with what the server
 * did, at a line that is too long or would become too many values, finished or not.
 */
export function createLineBuffer(): LineBuffer {
  let lines: string[] = [];
  let taken = 0;
  let open: Buffer[] = [];
  let openBytes = 0;

  const close = (end: Buffer): void => {
    const line = Buffer.concat([...open, end]);
    [open, openBytes] = [[], 0];
    const problem = textProblem(line);
    if (problem !== null) throw new Error(problem);
    const bytes = line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
    lines.push(bytes.toString('utf8'));
  };

  return {
    append(chunk) {
      let from = 0;
      for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
        close(chunk.subarray(from, at));
        from = at + 1;
      }
      const rest = chunk.subarray(from);
      open.push(rest);
      openBytes += rest.length;
      if (openBytes > MOST_MESSAGE_BYTES) throw new Error(TOO_LONG);
    },
    next() {
      const line = lines[taken];
      if (line === undefined) [lines, taken] = [[], 0];
      else taken += 1;
      return line ?? null;
    },
    clear() {
      [lines, taken, open, openBytes] = [[], 0, [], 0];
    },
  };
}
