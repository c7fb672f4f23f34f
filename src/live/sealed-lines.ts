import { type Payload, type PayloadCodec, defaultPayloadConverter } from '@temporalio/common';
import { isObject, parseJson, textField } from '../core/text/json.js';
import { decodePayloads, encodePayloads, payloadProto } from '../temporal/sdk-internals.js';

/** To which run the lines of a response belong, and the codecs of the client or worker. */
export interface LinesOf {
  readonly codecs: readonly PayloadCodec[];
  readonly namespace: string;
  readonly id: string;
}

/** Returns a line of JSON as it is sent to another process: encoded, if there are codecs. */
export async function sealedLine(line: string, of: LinesOf): Promise<string> {
  if (of.codecs.length === 0) return line;
  const [sealed = {}] = await encodePayloads([...of.codecs], [plain(line)], contextOf(of));
  const bytes = payloadProto().encode(sealed).finish();
  return JSON.stringify({ payload: Buffer.from(bytes).toString('base64') });
}

/**
 * Returns a line of JSON as it was before it was encoded. One that was not encoded passes the codecs as well,
 * which may refuse it. Null if it cannot be decoded.
 */
export async function openedLine(line: string, of: LinesOf): Promise<string | null> {
  const json = parseJson(line);
  const encoded = isObject(json) ? textField(json, 'payload') : '';
  if (of.codecs.length === 0) return encoded === '' ? line : null;
  try {
    const payload =
      encoded === '' ? plain(line) : payloadProto().decode(Buffer.from(encoded, 'base64'));
    const [opened = {}] = await decodePayloads([...of.codecs], [payload], contextOf(of));
    const text: unknown = defaultPayloadConverter.fromPayload(opened);
    return typeof text === 'string' ? text : null;
  } catch {
    return null;
  }
}

function plain(line: string): Payload {
  return defaultPayloadConverter.toPayload(line);
}

function contextOf({ namespace, id }: LinesOf) {
  return { type: 'workflow', namespace, workflowId: id } as const;
}
