import type { StreamEvent } from '../../src/live/stream.js';

/**
 * A reader that follows a stream according to its contract, and detects missing or repeated deltas.
 */
export interface Listener {
  receive(event: StreamEvent): void;
  readonly events: readonly StreamEvent[];
  /** The text in progress. */
  readonly partial: string;
  /** The replies, in their durable form. */
  readonly replies: readonly string[];
  /** The text of each reply that was streamed before it became durable. */
  readonly streamed: readonly string[];
  /**
   * The number of the attempt whose deltas were received for each reply; null if there were none.
   */
  readonly attempts: readonly (number | null)[];
}

export function createListener(): Listener {
  const events: StreamEvent[] = [];
  const replies: string[] = [];
  const streamed: string[] = [];
  const attempts: (number | null)[] = [];
  let number: number | null = null;
  const positions = new Set<string>();
  let attempt: string | null = null;
  let partial = '';
  let units = 0;
  const forget = (): void => {
    attempt = null;
    number = null;
    partial = '';
    units = 0;
  };
  return {
    events,
    replies,
    streamed,
    attempts,
    get partial() {
      return partial;
    },
    receive(event) {
      events.push(event);
      if (event.type !== 'superseded' && event.type !== 'gap') {
        if (positions.has(event.position)) throw new Error(`duplicate event: ${event.position}`);
        positions.add(event.position);
      }
      switch (event.type) {
        case 'delta': {
          const name = `${event.turn}/${event.step}/${event.attempt}`;
          if (attempt !== null && attempt !== name) throw new Error(`${attempt} was not ended`);
          if (event.offset !== units) throw new Error(`${units} units, then ${event.offset}`);
          attempt = name;
          number = event.attempt;
          units += event.text.length + (event.name?.length ?? 0);
          if (event.kind === 'text') partial += event.text;
          break;
        }
        case 'gap':
          if (event.offset !== units) throw new Error(`${units} units, then gap ${event.offset}`);
          units = event.until ?? units;
          partial += '[…]';
          break;
        case 'superseded':
          forget();
          break;
        case 'model-replied':
          replies.push(event.message.text);
          streamed.push(partial);
          attempts.push(number);
          forget();
          break;
        default:
      }
    },
  };
}

/** Reads until the condition holds, or to the end. */
export async function listen(
  stream: AsyncIterable<StreamEvent>,
  listener: Listener,
  until: (event: StreamEvent) => boolean = () => false,
): Promise<Listener> {
  for await (const event of stream) {
    listener.receive(event);
    if (until(event)) break;
  }
  return listener;
}
