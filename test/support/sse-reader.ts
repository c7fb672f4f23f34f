import { get, type IncomingMessage } from 'node:http';
import type { StreamEvent } from '../../src/live/stream.js';

/** A connection that reads server-sent events as a browser does. */
export interface SseReader {
  readonly events: AsyncGenerator<StreamEvent, void, undefined>;
  /** Reading starts when an event is requested. */
  readonly response: IncomingMessage;
  close(): void;
}

type Headers = Readonly<Record<string, string>>;

export async function request(url: string, headers: Headers = {}): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, resolve).on('error', reject);
  });
}

export async function openSse(url: string, headers: Headers = {}): Promise<SseReader> {
  const response = await request(url, headers);
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
  // Aborted by the reader or by the server: both end the stream.
  response.on('error', () => undefined);
  return { events: events(response), response, close: () => void response.destroy() };
}

async function* events(response: IncomingMessage): AsyncGenerator<StreamEvent, void, undefined> {
  let rest = '';
  for await (const text of response.setEncoding('utf8')) {
    const blocks = `${rest}${String(text)}`.split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const field = (name: string): string | undefined =>
        block
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      const data = field('data');
      if (data !== undefined) yield { ...JSON.parse(data), position: field('id') ?? '' };
    }
  }
}
