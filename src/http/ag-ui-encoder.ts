import type { JsonObject } from '../core/text/json.js';
import type { AssistantMessage, ToolMessage, UserMessage } from '../core/transcript/messages.js';
import type { Outcome } from '../core/transcript/outcome.js';
import type { Request } from '../core/transcript/request.js';
import type { StreamEvent } from '../live/stream.js';
import { type ThreadMessage, toInterrupt } from './ag-ui-input.js';
import {
  type AgUiEvent,
  type CallText,
  callOf,
  isSame,
  openSteps,
  openText,
  replyId,
  showCall,
  showText,
  threadMessages,
} from './ag-ui-messages.js';

/** What a stream is about. */
interface ThreadStream {
  readonly run: string;
  readonly threadId: string;
  readonly runId: string;
  /** The first turn that is streamed; earlier ones are only in snapshots. */
  readonly from: number;
  /** The turn with whose end the stream ends. */
  readonly last: number;
  /** What the client shows already. */
  readonly shown: readonly ThreadMessage[];
  /** Returns the id that the caller gave a message. */
  readonly ownId: (recorded: string) => string;
}

/** What the client shows, at the place that the stream has come to. */
function threadView({ from, shown }: ThreadStream) {
  const messages = threadMessages(shown);
  const steps = openSteps();
  const text = openText(messages, (step) => steps.model(step));
  let values: JsonObject = {};
  let turn = 0;
  const state = (): AgUiEvent => ({ type: 'STATE_SNAPSHOT', snapshot: values });
  const view = {
    messages,
    steps,
    text,
    turn: () => turn,
    beginTurn: (next: number) => void (turn = next),
    /** Whether events of a turn are sent. Those of earlier turns are in the first snapshot. */
    isLive: (of = turn) => of >= from,
    /** Returns what comes before the first event that is sent: a snapshot, if the client needs one. */
    sync: (): AgUiEvent[] => {
      if (messages.isCompared()) return [];
      return [...messages.compare(), ...(Object.keys(values).length > 0 ? [state()] : [])];
    },
    /** Ends what is in progress, so that the client accepts the end of the run. */
    settle: (): AgUiEvent[] => [
      ...view.sync(),
      ...text.close(),
      ...messages.settle(),
      ...steps.endAll(),
    ],
    /** Applies what a node of a graph has changed. */
    change: (patch: JsonObject | undefined): AgUiEvent[] => {
      values = { ...values, ...patch };
      return patch === undefined ? [] : [state()];
    },
  };
  return view;
}

type ThreadView = ReturnType<typeof threadView>;

/** The calls of a run. */
function callViews({ messages, isLive, sync }: ThreadView) {
  const shown = new Set<string>();
  const unfinished = new Set<string>();
  const calls = {
    /** Calls of the streamed turns without a result. */
    unfinished,
    request(of: readonly CallText[], turn: number) {
      for (const { id } of of) {
        shown.add(id);
        if (isLive(turn)) unfinished.add(id);
      }
    },
    /** Shows a call that no reply of a model has requested, such as one of a graph's node. */
    ensure(call: CallText, turn: number): AgUiEvent[] {
      const begun = isLive(turn) ? sync() : [];
      if (shown.has(call.id)) return begun;
      calls.request([call], turn);
      const own = callOf(call);
      const isKnown = messages.add({ id: call.id, role: 'assistant', toolCalls: [own] });
      return isKnown || !isLive(turn) ? begun : [...begun, ...showCall(own, null)];
    },
    finish(
      { callId: toolCallId, turn, text: content }: Pick<ToolMessage, 'callId' | 'turn' | 'text'>,
      tool: string,
    ): AgUiEvent[] {
      const begun = calls.ensure({ id: toolCallId, name: tool, arguments: '{}' }, turn);
      unfinished.delete(toolCallId);
      const id = `${toolCallId}_result`;
      const known = messages.known(id);
      const role = 'tool';
      const isKnown = messages.add({ id, role, content, toolCallId });
      if (isKnown || !isLive(turn)) return begun;
      if (known !== undefined) return [...begun, ...messages.snapshot()];
      return [...begun, { type: 'TOOL_CALL_RESULT', messageId: id, toolCallId, content, role }];
    },
  };
  return calls;
}

type CallViews = ReturnType<typeof callViews>;

/** The messages of a run that are not results of calls. */
function replyViews(
  { messages, steps, text, isLive, sync }: ThreadView,
  calls: CallViews,
  ownId: ThreadStream['ownId'],
) {
  /** What the attempt in progress has written, if nothing of it was lost. */
  let written: string | null = '';
  /** The last text that a reply has. A turn that is canceled answers with it, whatever came after it. */
  let lastText = '';
  const requested = (message: AssistantMessage, known: ThreadMessage | undefined): AgUiEvent[] => {
    const id = replyId(message);
    const own = (message.calls ?? []).map(callOf);
    const before = known?.toolCalls ?? [];
    if (before.some((call) => !own.some((one) => isSame(one, call)))) return messages.snapshot();
    const fresh = own.filter((call) => !before.some((one) => one.id === call.id));
    const begun = fresh.length > 0 ? steps.model(message.step) : [];
    return [...begun, ...fresh.flatMap((call) => showCall(call, id))];
  };
  return {
    lastText: () => lastText,
    write({ turn, step, text: delta }: { turn: number; step: number; text: string }): AgUiEvent[] {
      if (!isLive(turn) || written === null) return [];
      written += delta;
      return [...sync(), ...text.show(written, { turn, step, isFinal: false })];
    },
    /** What was written does not count. */
    void: () => void (written = ''),
    /** Part of what is written is unknown until it is durable. */
    lose: () => void (written = null),
    /** Shows a reply that is durable. */
    close(message: AssistantMessage): AgUiEvent[] {
      const { turn, step, calls: own = [] } = message;
      const begun = isLive(turn) ? sync() : [];
      const id = replyId(message);
      const before = text.shownOf(id);
      // Of a long text, the history has only the head and the tail.
      const isCut = message.blob !== undefined && before.length > message.text.length;
      const final = isCut ? before : message.text;
      written = '';
      if (message.text !== '') lastText = message.text;
      const shown = isLive(turn) ? text.show(final, { turn, step, isFinal: true }) : [];
      const events = [...begun, ...shown, ...text.close()];
      calls.request(own, turn);
      if (final === '' && own.length === 0) return events;
      const known = messages.known(id);
      messages.add({
        id,
        role: 'assistant',
        ...(final !== '' && { content: final }),
        ...(own.length > 0 && { toolCalls: own.map(callOf) }),
      });
      return isLive(turn) ? [...events, ...requested(message, known)] : events;
    },
    /** Shows a message of a person, or an answer that no model has written. */
    add(message: UserMessage | AssistantMessage): AgUiEvent[] {
      const { role, text: content, turn, n } = message;
      const isPrompt = role === 'user' && message.origin !== undefined;
      if (isPrompt || content === '') return [];
      if (role === 'assistant' && message.supplied === undefined) lastText = content;
      // The first snapshot has what was said before the first event that is sent.
      const isSent = isLive(turn) && (messages.isCompared() || role === 'assistant');
      const begun = isSent ? sync() : [];
      const id = (role === 'user' && message.id && ownId(message.id)) || `message_${n}`;
      const isKnown = messages.add({ id, role, content });
      return isKnown || !isSent
        ? begun
        : [...begun, ...text.close(), ...showText(id, role, content)];
    },
  };
}

interface Parts {
  readonly view: ThreadView;
  readonly calls: CallViews;
  readonly replies: ReturnType<typeof replyViews>;
  readonly place: Pick<ThreadStream, 'threadId' | 'runId'>;
}

/** Returns the last events of a stream whose turn has ended. */
function endOf(
  { view, calls, replies, place }: Parts,
  { status, reason, answer, output, error, usage }: Outcome,
): AgUiEvent[] {
  const { sync, settle, messages } = view;
  const events = sync();
  if (answer !== null && answer !== replies.lastText()) {
    const id = `answer_${view.turn()}`;
    const isKnown = messages.add({ id, role: 'assistant', content: answer });
    if (!isKnown) events.push(...view.text.close(), ...showText(id, 'assistant', answer));
  }
  if (status === 'failed') {
    events.push(...settle());
    return [...events, { type: 'RUN_ERROR', message: error ?? reason, code: reason }];
  }
  const { inputTokens, outputTokens, cachedTokens: cachedInputTokens } = usage;
  const tokens = { inputTokens, outputTokens, cachedInputTokens };
  const finished = { type: 'RUN_FINISHED', ...place, usage: [tokens] };
  if (status === 'cancelled') {
    return [...events, ...settle(), { ...finished, outcome: { type: 'cancelled' } }];
  }
  // A call without a result would count as one that the client executes.
  for (const callId of calls.unfinished) {
    events.push(...calls.finish({ callId, turn: view.turn(), text: 'not executed' }, ''));
  }
  const result = { status, reason, ...(output !== null && { output }) };
  return [...events, ...settle(), { ...finished, result, outcome: { type: 'success' } }];
}

/** Returns what events mean that are not about messages. */
function ofGraph({ isLive, sync, steps, change }: ThreadView, event: StreamEvent): AgUiEvent[] {
  switch (event.type) {
    case 'node-begun':
      return isLive() ? [...sync(), ...steps.begin(event.node)] : [];
    case 'node-ended': {
      const begun = isLive() ? [...sync(), ...steps.end(event.node)] : [];
      const changed = change(event.patch);
      return isLive() ? [...begun, ...changed] : [];
    }
    case 'work-blocked': {
      const value = { reason: event.reason, message: event.message };
      return isLive() ? [...sync(), { type: 'CUSTOM', name: 'perdure:blocked', value }] : [];
    }
    default:
      return [];
  }
}

/** Turns the events of a run into those of AG-UI. */
export function agUiEncoder(given: ThreadStream) {
  const { run, threadId, runId, last } = given;
  const place = { threadId, runId };
  const view = threadView(given);
  const calls = callViews(view);
  const replies = replyViews(view, calls, given.ownId);
  const parts = { view, calls, replies, place };
  const open = new Set<string>();

  const eventsOf = (event: StreamEvent): AgUiEvent[] => {
    switch (event.type) {
      case 'turn-begun':
        view.beginTurn(event.turn);
        return [];
      case 'message-added':
        return replies.add(event.message);
      case 'delta':
        return event.kind === 'text' ? replies.write(event) : [];
      case 'superseded':
        replies.void();
        return [];
      case 'gap':
        replies.lose();
        return [];
      case 'model-replied':
        return replies.close(event.message);
      case 'answer-refused':
        return replies.close({ ...event.message, text: '', calls: [] });
      case 'call-begun':
        return calls.ensure(event.call, event.turn);
      case 'call-finished':
        return calls.finish(event.message, event.tool);
      case 'request-raised':
        open.add(event.request);
        return [];
      case 'request-closed':
        open.delete(event.request);
        return [];
      default:
        return ofGraph(view, event);
    }
  };

  return {
    begin: (): AgUiEvent => ({ type: 'RUN_STARTED', ...place, metadata: { perdure: { run } } }),
    /** Returns the events that an event of the run means, and whether they are the last ones. */
    advance(event: StreamEvent): { readonly events: AgUiEvent[]; readonly isOver: boolean } {
      const isOver =
        event.type === 'run-ended' || (event.type === 'turn-ended' && event.turn === last);
      return { events: isOver ? endOf(parts, event.outcome) : eventsOf(event), isOver };
    },
    asks: () => open.size > 0,
    /** Whether the stream has come to the point at which exactly these requests are open. */
    isAt: (pending: readonly Pick<Request, 'id'>[]): boolean =>
      pending.length === open.size && pending.every(({ id }) => open.has(id)),
    /** Returns the end of a stream whose run waits for answers. */
    interrupt(pending: readonly Request[]): AgUiEvent[] {
      const shown = pending.flatMap(({ call: id, tool = '', arguments: json = '{}' }) =>
        id === undefined ? [] : calls.ensure({ id, name: tool, arguments: json }, view.turn()),
      );
      const interrupts = pending.map((one) => toInterrupt(one, run));
      const outcome = { type: 'interrupt', interrupts };
      return [
        ...view.sync(),
        ...shown,
        ...view.settle(),
        { type: 'RUN_FINISHED', ...place, outcome },
      ];
    },
  };
}
