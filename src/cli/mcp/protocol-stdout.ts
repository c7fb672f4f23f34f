import { Writable } from 'node:stream';
import { escapeJson } from '../../core/text/hidden.js';
import { redactJsonText } from '../../secrets/redact-json.js';

/**
 * Keeps standard output for the protocol: whatever else this process, or a tool that it works on, writes
 * there goes to standard error from now on. Returns where the protocol is to be written: a message of
 * JSON at a time, which is redacted, and whose hidden characters are escaped on the way.
 */
export function takeStdout(): Writable {
  const own = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return new Writable({
    decodeStrings: false,
    write: (chunk: string | Uint8Array, _encoding, done) => {
      own(typeof chunk === 'string' ? escapeJson(redactedLine(chunk)) : chunk, () => done());
    },
  });
}

/** A message of the protocol is JSON in one line. */
function redactedLine(line: string): string {
  const text = line.endsWith('\n') ? line.slice(0, -1) : line;
  const safe = redactJsonText(text);
  return safe === text ? line : `${safe}\n`;
}
