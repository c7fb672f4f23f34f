import type { ToolCall } from '../core/transcript/messages.js';
import type { Request } from '../core/transcript/request.js';
import type { StreamEvent } from '../live/stream.js';
import { type ResponsePlace, turnOfCall } from './response-ids.js';

/** An open request of a run, as its events show it. */
interface Asked {
  readonly isClient: boolean;
  /** Empty for a request that is not about a call. */
  readonly call: string;
}

/** What is known of the open requests of a run, for the part of a turn that is one response. */
interface PauseReader {
  /** Whether the response has begun: the requests before it are answered. */
  readonly hasBegun: boolean;
  /** Reads an event. Returns the calls with which the response has ended before it; none if it goes on. */
  read(event: StreamEvent): readonly ToolCall[];
  /** The calls with which the response ends if nothing else has happened; none if it goes on. */
  pending(): readonly ToolCall[];
  /** Whether exactly these requests are open. */
  isAt(pending: readonly Pick<Request, 'id'>[]): boolean;
}

/**
 * Creates the reader for a response. A response ends where its run waits only for calls that the client
 * executes: at the first event of the history after which no other request is open. That depends on
 * nothing but the history, so a response that is read again ends at the same place.
 */
export function createPauseReader({ turn, after }: ResponsePlace): PauseReader {
  const open = new Map<number, Asked>();
  const calls = new Map<string, ToolCall>();
  let hasBegun = after === undefined;
  /** The history event of the newest durable event. */
  let newest = '';

  const pending = (): readonly ToolCall[] => {
    if (!hasBegun || open.size === 0) return [];
    const asked = [...open].toSorted(([one], [other]) => one - other);
    const isPaused = asked.every(
      ([number, { isClient, call }]) =>
        isClient && number > (after ?? 0) && turnOfCall(call) === turn,
    );
    return isPaused ? asked.flatMap(([, { call }]) => calls.get(call) ?? []) : [];
  };
  return {
    get hasBegun() {
      return hasBegun;
    },
    read(event) {
      if ('offset' in event && typeof event.offset === 'string') {
        const at = event.offset.slice(0, event.offset.lastIndexOf(':'));
        const ended = at === newest ? [] : pending();
        if (ended.length > 0) return ended;
        newest = at;
      }
      if (event.type === 'model-replied') {
        for (const call of event.message.calls ?? []) calls.set(call.id, call);
      } else if (event.type === 'request-raised') {
        const { request, kind, call = '' } = event;
        open.set(numberOf(request), { isClient: kind === 'client_tool', call });
      } else if (event.type === 'request-closed') {
        const number = numberOf(event.request);
        open.delete(number);
        if (number === after) hasBegun = true;
      }
      return [];
    },
    pending,
    isAt: (requests) =>
      requests.length === open.size && requests.every(({ id }) => open.has(numberOf(id))),
  };
}

/** Returns the number of a request, such as 2 for `r2`. */
export function numberOf(request: string): number {
  return Number(request.slice(1));
}
