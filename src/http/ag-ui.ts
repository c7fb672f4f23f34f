import type { Hono } from 'hono';
import { InputError, NoRunError, RefusedError } from '../core/errors.js';
import { visibleJson } from '../core/text/text.js';
import { BlobError } from '../storage/blob-store.js';
import { idPrefixOf, openRun } from './access.js';
import { agUiEncoder } from './ag-ui-encoder.js';
import { RUN_FORM, type ThreadInput, readRunInput, readThread } from './ag-ui-input.js';
import {
  type DoorParts,
  answerJson,
  callerOf,
  openRunStream,
  readBody,
  whileRead,
} from './api-routes.js';
import {
  beginOrResume,
  noConversation,
  readOwn,
  refuseUnanswered,
  requestsAt,
  runOf,
  sayIn,
  servedInput,
  unreadableRequests,
  viewOf,
} from './chats.js';
import { errorAnswer } from './errors.js';
import type { Guarded, GuardedContext } from './guard.js';
import { type Caller, actorOfCaller, createHandlers, openToCancel, ownId } from './handlers.js';
import { sseEvent, sseResponse } from '../live/sse.js';

/** The run of a thread, and which of its turns a stream shows. */
interface Followed {
  readonly run: string;
  readonly from: number;
  readonly last: number;
}

/** A thread of an agent, and what its client sends. */
interface Thread {
  readonly agent: string;
  readonly run: string;
  readonly input: ThreadInput;
}

/** Adds the routes for clients of AG-UI: `/v1/ag-ui/{agent}`. */
export function addAgUiRoutes(app: Hono<Guarded>, parts: DoorParts): void {
  const { place } = parts;
  const answer =
    (
      open: (thread: Thread, caller: Caller) => Promise<Followed>,
    ): ((context: GuardedContext) => Promise<Response>) =>
    async (context) => {
      const agent = context.req.param('agent') ?? '';
      const caller = callerOf(context, parts);
      const body = await readBody(context);
      const input = servedInput(parts, { caller, agent }, () => readRunInput(body));
      return await whileRead(context, parts, async (over) => {
        const run = runOf(caller, {
          door: 'thread',
          agent,
          id: input.threadId,
          prefix: idPrefixOf(place, caller),
        });
        try {
          const followed = await open({ agent, run, input }, caller);
          return await streamThread(parts, caller, { ...followed, input, over });
        } catch (error) {
          if (!RefusedError.isInstance(error)) throw error;
          return refuse(parts, { input, error, over });
        }
      });
    };
  app.post(
    '/v1/ag-ui/:agent',
    answer(async (thread, caller) => await begin(parts, caller, thread)),
  );
  app.post(
    '/v1/ag-ui/:agent/connect',
    answer(async ({ run }, caller) => await follow(parts, caller, run)),
  );
  app.post('/v1/ag-ui/:agent/cancel', async (context) => {
    const agent = context.req.param('agent');
    const caller = callerOf(context, parts);
    const id = readThread(await readBody(context));
    const run = runOf(caller, { door: 'thread', agent, id, prefix: idPrefixOf(place, caller) });
    await openToCancel(place, caller.principal, run).catch((error: unknown) => {
      throw NoRunError.isInstance(error) ? noConversation('threadId', { agent, id }) : error;
    });
    // Before a worker has seen the run, its first turn waits.
    const turn = Math.max(1, (await place.api.status(run)).turn);
    const actor = place.as(actorOfCaller(caller));
    await actor.cancel(run, { turn, within: '30 seconds' }).catch((error: unknown) => {
      // It has ended already.
      if (!RefusedError.isInstance(error)) throw error;
    });
    return answerJson({ run, turn });
  });
}

/** Returns what a stream shows of a thread as it is. Rejects with a `NoRunError`. */
async function follow({ place }: DoorParts, caller: Caller, run: string): Promise<Followed> {
  const found = await readOwn(place, caller, run);
  if (found === null) {
    throw new NoRunError(
      'threadId: expected a thread of yours, got another one; start it with a message in `messages`',
    );
  }
  const from = Math.max(1, found.turn);
  // A message that waits may join the turn under way, so their number does not tell the last turn.
  const { state } = await viewOf(place, run);
  return { run, from, last: Math.max(from, state?.inbox.lastTurn ?? 1) };
}

/** Records what the user says and decides. Doing it again has no effect. */
async function begin(
  parts: DoorParts,
  caller: Caller,
  { agent, run, input }: Thread,
): Promise<Followed> {
  const { place } = parts;
  const { said, isLast, decisions, fault } = input;
  const isEmpty = decisions === null && said.length === 0;
  servedInput(parts, { caller, agent }, () => {
    if (fault !== null && (decisions === null || isLast)) throw new InputError(fault);
    if (isEmpty)
      throw new InputError(`messages: expected a message of the user, got none; send ${RUN_FORM}`);
  });
  if (decisions !== null) {
    await openRun(place, { principal: caller.principal, right: 'read', run });
    if (decisions.length > 0) await createHandlers(place).decide({ run, decisions }, caller);
    if (!isLast) return await follow(parts, caller, run);
  } else {
    const ids = said.map(({ id }) => id);
    await refuseUnanswered(place, caller, { run, ids, fix: 'send them as resume, or connect' });
    await beginOrResume(place, caller, { agent, run });
  }
  let turn = 1;
  for (const one of said) turn = await sayIn(place, caller, { run, ...one });
  if (decisions === null) return { run, from: turn, last: turn };
  const now = await follow(parts, caller, run);
  return { ...now, last: Math.max(now.last, turn) };
}

async function streamThread(
  parts: DoorParts,
  caller: Caller,
  {
    input,
    over,
    ...followed
  }: Followed & { readonly input: ThreadInput; readonly over: AbortController },
): Promise<Response> {
  const { run } = followed;
  const { place, limits } = parts;
  const stream = await openRunStream(place, { run, over });
  const encoder = agUiEncoder({ ...followed, ...input, ownId: (id) => ownId(caller, id) });
  async function* blocks(): AsyncGenerator<string, void, undefined> {
    yield block([encoder.begin()]);
    for await (const batch of stream.batches) {
      for (const event of batch) {
        const { events, isOver } = encoder.advance(event);
        if (events.length > 0) yield block(events);
        if (isOver) return;
      }
      const pending = await requestsAt(place, run, {
        reader: encoder,
        signal: over.signal,
      }).catch((error: unknown) => unreadableRequests(parts, run, error));
      if (typeof pending === 'string') {
        return yield block([{ type: 'RUN_ERROR', message: pending, code: BlobError.code }]);
      }
      if (pending !== null) return yield block(encoder.interrupt(pending));
    }
  }
  return sseResponse(blocks(), { over, readMs: limits.readMs });
}

/** Answers with the error that ends the stream of a request that the run refuses. */
function refuse(
  { limits, place }: DoorParts,
  {
    input: { threadId, runId },
    error,
    over,
  }: { readonly input: ThreadInput; readonly error: unknown; readonly over: AbortController },
): Response {
  const { reason, code, message, fix } = errorAnswer(error, place.runnable).body.error;
  async function* blocks(): AsyncGenerator<string, void, undefined> {
    const text = fix === null ? message : `${message}; ${fix}`;
    yield block([
      { type: 'RUN_STARTED', threadId, runId },
      { type: 'RUN_ERROR', message: text, code: reason ?? code },
    ]);
  }
  return sseResponse(blocks(), { over, readMs: limits.readMs });
}

/** Returns events as server-sent events. */
function block(events: readonly object[]): string {
  return events.map((event) => sseEvent({ data: visibleJson(event) })).join('');
}
