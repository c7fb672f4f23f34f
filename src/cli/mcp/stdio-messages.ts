import { Transform, Writable, type Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
} from '@modelcontextprotocol/server';
import { isObject, parseForeignJson } from '../../core/text/json.js';
import { escapeJson, show } from '../../core/text/text.js';
import { toolCallFault } from '../../http/input-fields.js';
import { failedResult } from '../../http/mcp-tools.js';
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
/** The answer to a line whose id cannot be read. */
const NO_JSON =
  '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"expected JSON in one line"}}';
const INVALID_REQUEST = -32_600;
const NO_MESSAGE =
  'expected one message of JSON-RPC 2.0 in a line, such as {"jsonrpc":"2.0","id":1,"method":"tools/list"}';
/** Longer messages go to the SDK unread, which refuses them. */
const MAX_LINE_CHARACTERS = 16 * 1024 * 1024;

/**
 * Returns the messages of a client, one per line, for a reader that parses them with `JSON.parse`. A
 * message that this would change, such as one with an integer beyond 2^53, does not reach the
 * reader: its request is answered on `output`, with what is wrong. So is JSON that is not a message, about
 * which `note` gets a line, too. Half characters are replaced.
 */
export function checkedMessages(
  input: Readable,
  output: Writable,
  note: (text: string) => void,
): Transform {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  const checked = new Transform({
    decodeStrings: false,
    transform: (chunk: string | Uint8Array, _encoding, done) => {
      const lines = (typeof chunk === 'string' ? chunk : decoder.write(chunk)).split('\n');
      lines[0] = rest + (lines[0] ?? '');
      rest = lines.pop() ?? '';
      for (const line of lines) checked.push(readable(line, output, note));
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
function readable(line: string, output: Writable, note: (text: string) => void): string {
  const read = parseForeignJson(line);
  if (read.ok) {
    const fault = toolCallFault(read.value);
    if (fault !== null) {
      const answer = { jsonrpc: '2.0', id: idOf(read.value), result: failedResult(fault, 'input') };
      output.write(`${JSON.stringify(answer)}\n`);
      return '';
    }
    if (isMessage(read.value)) return `${JSON.stringify(read.value)}\n`;
    note(`${NO_MESSAGE}, got ${show(read.value)}`);
    const error = { code: INVALID_REQUEST, message: NO_MESSAGE };
    output.write(`${JSON.stringify({ jsonrpc: '2.0', id: idOf(read.value), error })}\n`);
    return '';
  }
  if (!read.isJson) {
    if (line.trim() === '') return `${line}\n`;
    note(`${NO_MESSAGE}, got ${show(line)}`);
    output.write(`${NO_JSON}\n`);
    return '';
  }
  const message: unknown = JSON.parse(line);
  const { id, method } = isObject(message) ? message : {};
  if (typeof method === 'string' && (typeof id === 'string' || typeof id === 'number')) {
    const answer =
      method === 'tools/call'
        ? { result: failedResult(read.problem, 'input') }
        : { error: { code: INVALID_PARAMS, message: read.problem } };
    output.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
  }
  return '';
}

/** Whether the SDK takes a value for a message. */
function isMessage(value: unknown): boolean {
  return isJSONRPCRequest(value) || isJSONRPCNotification(value) || isJSONRPCResponse(value);
}

/** Returns the id of what may be a request; null if it has none. */
function idOf(value: unknown): string | number | null {
  const { id } = isObject(value) ? value : {};
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}
