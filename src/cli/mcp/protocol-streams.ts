import { Writable } from 'node:stream';
import { escapeJson } from '../../core/text/hidden.js';
import { redactJsonText } from '../../secrets/redact-json.js';

/**
 * Reserves stdout for the protocol: everything else that this process or its tools write to stdout
 * goes to stderr from now on. Returns the stream for the protocol. It accepts one JSON message per
 * write, redacts it, and escapes hidden characters.
 */
export function takeStdout(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  const output = new Writable({
    decodeStrings: false,
    write: (chunk: string | Uint8Array, _encoding, done) => {
      write(typeof chunk === 'string' ? escapeJson(redactedLine(chunk)) : chunk, () => done());
    },
  });
  // Each large answer in progress adds a listener until the client has read it.
  return output.setMaxListeners(0);
}

/** Redacts a message of the protocol, which is JSON in one line. */
function redactedLine(line: string): string {
  const text = line.endsWith('\n') ? line.slice(0, -1) : line;
  const safe = redactJsonText(text);
  return safe === text ? line : `${safe}\n`;
}
