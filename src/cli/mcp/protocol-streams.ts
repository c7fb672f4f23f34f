import { Transform, Writable, type Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { parseForeignJson, isObject } from '../../core/text/json.js';
import { escapeJson } from '../../core/text/text.js';
import { redactJsonText } from '../../secrets/redact.js';

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

const INVALID_PARAMS = -32_602;
/** Longer messages go to the SDK unread, which refuses them. */
const MAX_LINE_CHARACTERS = 16 * 1024 * 1024;

/**
 * Returns the messages of a client, one per line, for a reader that parses them with `JSON.parse`. A
 * message that this would change, such as one with an integer beyond 2^53, does not reach the
 * reader: its request is answered on `output`, with what is wrong. Half characters are replaced.
 */
export function checkedMessages(input: Readable, output: Writable): Transform {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  const checked = new Transform({
    decodeStrings: false,
    transform: (chunk: string | Uint8Array, _encoding, done) => {
      const lines = (typeof chunk === 'string' ? chunk : decoder.write(chunk)).split('\n');
      lines[0] = rest + (lines[0] ?? '');
      rest = lines.pop() ?? '';
      for (const line of lines) checked.push(readable(line, output));
      if (rest.length > MAX_LINE_CHARACTERS) {
        checked.push(rest);
        rest = '';
      }
      done();
    },
  });
  input.on('error', (error) => checked.destroy(error));
  return input.pipe(checked);
}

/** Returns a line for the SDK; an empty text if its message is refused. */
function readable(line: string, output: Writable): string {
  const read = parseForeignJson(line);
  if (read.ok) return `${JSON.stringify(read.value)}\n`;
  if (!read.isJson) return `${line}\n`;
  const message: unknown = JSON.parse(line);
  const { id, method } = isObject(message) ? message : {};
  if (typeof method === 'string' && (typeof id === 'string' || typeof id === 'number')) {
    const content = [{ type: 'text', text: read.problem }];
    const answer =
      method === 'tools/call'
        ? { result: { content, isError: true } }
        : { error: { code: INVALID_PARAMS, message: read.problem } };
    output.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
  }
  return '';
}
