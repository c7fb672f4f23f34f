import type { ToolCall } from '../core/transcript/messages.js';
import type { ThreadCall, ThreadMessage } from './ag-ui-input.js';

/** What a client of AG-UI shows of a thread, and the events that change it. */

/** An event of AG-UI. */
export type AgUiEvent = Readonly<Record<string, unknown>> & { readonly type: string };

/** The id of a reply depends on its place only, so each attempt and each stream has the same. */
export const replyId = ({ turn, step }: { readonly turn: number; readonly step: number }): string =>
  `reply_${turn}_${step}`;

export function callOf({ id, name, arguments: json }: CallText): ThreadCall {
  return { id, type: 'function', function: { name, arguments: json } };
}

/** A call, as far as it is shown. */
export type CallText = Pick<ToolCall, 'id' | 'name' | 'arguments'>;

/** Returns the events of a whole call. `parent`: the reply that requests it. */
export function showCall({ id: toolCallId, function: of }: ThreadCall, parent: string | null) {
  const start = { type: 'TOOL_CALL_START', toolCallId, toolCallName: of.name };
  return [
    { ...start, ...(parent !== null && { parentMessageId: parent }) },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: of.arguments },
    { type: 'TOOL_CALL_END', toolCallId },
  ];
}

/** Returns the events of a whole message. */
export function showText(messageId: string, role: 'user' | 'assistant', delta: string) {
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
    { type: 'TEXT_MESSAGE_END', messageId },
  ];
}

export const isSame = (one: object, other: object | undefined): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

/**
 * The messages of a run beside those that the client shows. What the client shows already is not sent
 * again, and what the run does not have is taken back by a snapshot.
 */
export function threadMessages(shown: readonly ThreadMessage[]) {
  const durable = new Map<string, ThreadMessage>();
  /** What the client shows and the run has not confirmed yet, by id. */
  let unconfirmed = new Map(shown.map((one) => [one.id, one]));
  let isCompared = false;
  const snapshot = (): AgUiEvent[] => {
    unconfirmed = new Map();
    return [{ type: 'MESSAGES_SNAPSHOT', messages: [...durable.values()] }];
  };
  return {
    known: (id: string) => unconfirmed.get(id),
    snapshot,
    /** Compares the client's list with the run's, before anything is added to it. */
    compare(): AgUiEvent[] {
      if (isCompared) return [];
      isCompared = true;
      const ids = [...durable.keys()];
      if ([...durable.values()].every((one, at) => isSame(one, shown[at]))) {
        for (const id of ids) unconfirmed.delete(id);
        return [];
      }
      // The client keeps the order of messages that it knows, and adds the others after them.
      const kept = shown.map(({ id }) => id).filter((id) => durable.has(id));
      const isInOrder = ids.every((id, at) => at >= kept.length || kept[at] === id);
      return isInOrder ? snapshot() : [{ type: 'MESSAGES_SNAPSHOT', messages: [] }, ...snapshot()];
    },
    isCompared: () => isCompared,
    /** Adds a message of the run, and returns whether the client shows it already. */
    add(message: ThreadMessage): boolean {
      const known = unconfirmed.get(message.id);
      durable.set(message.id, message);
      if (isCompared) unconfirmed.delete(message.id);
      return known !== undefined && isSame(message, known);
    },
    /** Returns a snapshot if the client shows what the run does not have. */
    settle(): AgUiEvent[] {
      const isForeign = [...unconfirmed.values()].some(({ role }) => role !== 'user');
      return isForeign ? snapshot() : [];
    },
  };
}

type Messages = ReturnType<typeof threadMessages>;

/** The steps in progress. A step of a model begins with what it says first. */
export function openSteps() {
  const open = new Set<string>();
  let ofModel: string | null = null;
  const end = (stepName: string): AgUiEvent[] =>
    open.delete(stepName) ? [{ type: 'STEP_FINISHED', stepName }] : [];
  const begin = (stepName: string): AgUiEvent[] => {
    if (open.has(stepName)) return [];
    open.add(stepName);
    return [{ type: 'STEP_STARTED', stepName }];
  };
  return {
    begin,
    end,
    model(step: number): AgUiEvent[] {
      const name = `step ${step}`;
      if (name === ofModel && open.has(name)) return [];
      const before = ofModel === null ? [] : end(ofModel);
      ofModel = name;
      return [...before, ...begin(name)];
    },
    endAll: (): AgUiEvent[] => [...open].flatMap(end),
  };
}

/** The text in progress. */
export function openText(messages: Messages, begin: (step: number) => AgUiEvent[]) {
  /** What was sent of each reply. */
  const sent = new Map<string, string>();
  let id: string | null = null;
  let isOpen = false;
  const shownOf = (of: string): string => sent.get(of) ?? messages.known(of)?.content ?? '';
  const close = (): AgUiEvent[] => {
    const events = isOpen ? [{ type: 'TEXT_MESSAGE_END', messageId: id }] : [];
    [id, isOpen] = [null, false];
    return events;
  };
  return {
    close,
    /** Shows the text of a reply so far. `isFinal`: this text, and no other, is durable. */
    show(
      target: string,
      {
        turn,
        step,
        isFinal,
      }: { readonly turn: number; readonly step: number; readonly isFinal: boolean },
    ): AgUiEvent[] {
      const next = replyId({ turn, step });
      const events = id === next ? [] : close();
      id = next;
      let shown = shownOf(next);
      if (target === shown) return events;
      if (!target.startsWith(shown)) {
        // An attempt that has not come as far as the last one may still say the same.
        if (!isFinal && shown.startsWith(target)) return events;
        events.push(...close(), ...messages.snapshot());
        sent.clear();
        [id, shown] = [next, ''];
      }
      if (target === '') return events;
      if (!isOpen) {
        events.push(...begin(step), {
          type: 'TEXT_MESSAGE_START',
          messageId: id,
          role: 'assistant',
        });
      }
      isOpen = true;
      sent.set(next, target);
      const delta = target.slice(shown.length);
      return [...events, { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta }];
    },
    /** The text that the client has of a reply. */
    shownOf,
  };
}
