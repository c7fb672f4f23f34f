import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../src/core/text/json.js';
import type { Usage } from '../../src/core/transcript/outcome.js';
import { replyRaw, type Reply } from '../../src/testing/replies.js';

const FOLDER = 'test/fixtures/servers';

/** A reply as a server is known to send it. */
export interface Fixture {
  readonly server: string;
  readonly oddity: string;
  /** Where the form is reported or documented. */
  readonly source: string;
  /** A body that is sent first, and cannot be used. */
  readonly failing?: JsonObject;
  readonly whole?: JsonObject;
  /** What comes before the body. */
  readonly wholeBefore?: string;
  /** Events in order; a text is `[DONE]`, or with a colon before it a comment. */
  readonly stream?: readonly (JsonObject | string)[];
  readonly expect: {
    readonly text?: string;
    readonly calls?: readonly {
      readonly name: string;
      readonly arguments: { readonly city: string };
    }[];
    readonly usage: Partial<Usage>;
    /** Where the whole body tells more than the stream. */
    readonly usageWhole?: Partial<Usage>;
    /** Type of the report that the unusable body leaves behind. */
    readonly failed?: string;
  };
}

function eventOf(event: JsonObject | string): string {
  if (typeof event !== 'string') return `data: ${JSON.stringify(event)}\n\n`;
  return event.startsWith(':') ? `${event}\n\n` : `data: ${event}\n\n`;
}

const soon = { 'retry-after-ms': '10' };

/** Returns the steps of a stub that answers as the server does. */
export function stepsOf(
  { failing, whole, wholeBefore = '', stream }: Fixture,
  how: string,
): Reply[] {
  if (how === 'streamed') {
    const headers = { 'content-type': 'text/event-stream' };
    return [replyRaw((stream ?? []).map(eventOf).join(''), { headers })];
  }
  return [
    ...(failing ? [replyRaw(JSON.stringify(failing), { headers: soon })] : []),
    replyRaw(wholeBefore + JSON.stringify(whole)),
  ];
}

const fixtures = readdirSync(FOLDER).map((file): readonly [string, Fixture] => [
  file.replace('.json', ''),
  JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Fixture,
]);
/** Each fixture, as a whole body and as a stream, where it has them. */
export const oddReplies = fixtures.flatMap(([name, fixture]) =>
  (['whole', 'streamed'] as const)
    .filter((how) => fixture[how === 'whole' ? 'whole' : 'stream'] !== undefined)
    .map((how) => [name, how, fixture] as const),
);
