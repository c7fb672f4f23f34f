import { actorOf } from '../core/input/turn-context.js';
import { askingWork } from '../core/requests/open-requests.js';
import type { RunEvent } from '../core/run/events.js';
import type { RunState } from '../core/state/state.js';
import { callOfWork } from '../core/state/work.js';
import type { Message } from '../core/transcript/messages.js';
import { findCall } from '../core/transcript/transcript.js';
import type { DurableStep } from './durable-steps.js';
import { isOfNode, nodeSteps } from './graph-steps.js';
import type { Projection } from './projection.js';
import { type States, freshMessages } from './reader/run-view.js';

/** Returns the steps that a run event means. `run`: the run after the event of its history. */
type Meaning = (change: States, run: Projection) => readonly DurableStep[];

/** The event means no step of its own. */
const NONE: Meaning = () => [];

/** A request is closed when its work no longer asks: by a decision, or because its reason is gone. */
const closed: Meaning = ({ before, after }, { decisions }) => {
  if (before.work === after.work) return [];
  const open = requestIds(after);
  return requestIds(before)
    .filter((id) => !open.includes(id))
    .map((request): DurableStep => {
      const made = decisions.findLast(
        ({ decision }) => decision.request === request && decision.refused === undefined,
      );
      const { as = null, ...who } = made?.decision ?? {};
      return { type: 'request-closed', request, as, ...actorOf(who) };
    });
};

/**
 * The turn goes on: messages join the transcript, and a graph's run leaves and enters nodes. The last
 * node of a turn ends before the turn's answer, and a node begins before its message to the model.
 */
export const advances: Meaning = (change, run) => {
  const messages = freshMessages(change).flatMap((message) => toSteps(message, run));
  const { ended, begun } = nodeSteps(change, run);
  const own = messages.findIndex((step) => isOfNode(step, change.after.graph?.at?.node));
  const until = own < 0 ? messages.length : own;
  const first = [...closed(change, run), ...messages.slice(0, until)];
  return [...first, ...ended, ...begun, ...messages.slice(until)];
};

const turnBegun: Meaning = (change, run) => [
  { type: 'turn-begun', turn: change.after.turn.number },
  ...advances(change, run),
];

/** The messages that join an ended turn belong to it. */
const turnEnded: Meaning = (change, run) => {
  const { number: turn, phase } = change.before.turn;
  const { outcome } = phase.type === 'over' ? phase : {};
  return [
    ...advances(change, run),
    ...(outcome ? [{ type: 'turn-ended', turn, outcome } as const] : []),
  ];
};

const raised: Meaning = (change, run) => {
  const { after } = change;
  const work = askingWork(after).at(-1);
  if (work === undefined) return [];
  const { id: request, kind, why } = work.request;
  const call = callOfWork(after, work.name)?.id;
  const about = { request, kind, ...(call !== undefined && { call }), why };
  return [...closed(change, run), { type: 'request-raised', ...about }];
};

const pauseChanged: Meaning = ({ before, after }) => {
  if (before.paused === after.paused) return [];
  return [{ type: after.paused ? 'run-paused' : 'run-resumed' }];
};

/**
 * The steps that each event of a run means. Blocked work, waits, and the beginnings of calls are not
 * here, because no event of the run states them.
 */
export const MEANINGS: Readonly<Record<RunEvent['type'], Meaning>> = {
  'turn-begun': turnBegun,
  'node-begun': advances,
  'conversation-recorded': NONE,
  'messages-joined': advances,
  'documents-retrieved': advances,
  'retrieval-failed': advances,
  'turn-remembered': NONE,
  'values-lost': NONE,
  'model-replied': advances,
  'model-failed': advances,
  'messages-refused': NONE,
  'tokens-used': NONE,
  'usage-spent': NONE,
  'limit-hit': NONE,
  'call-finished': advances,
  'time-passed': advances,
  'interruption-requested': NONE,
  'turn-interrupted': advances,
  'closing-begun': advances,
  'turn-ended-at-limit': advances,
  'transcript-compacted': advances,
  'turn-recorded': turnEnded,
  'call-edited': NONE,
  'verdict-recorded': NONE,
  'undo-parsed': NONE,
  'limit-kept': NONE,
  'limit-raised': NONE,
  'undo-enabled': NONE,
  'message-received': NONE,
  'message-refused': NONE,
  'decision-recorded': NONE,
  'end-requested': NONE,
  'pause-changed': pauseChanged,
  'limits-set': NONE,
  'limits-requested': NONE,
  'request-raised': raised,
  'decision-proposed': NONE,
  'request-notified': NONE,
  'grant-added': NONE,
  'grant-revoked': NONE,
  'undo-changed': NONE,
  'tool-accepted': NONE,
  'agent-loaded': NONE,
  'run-forked': NONE,
  'agent-refreshed': NONE,
  'messages-archived': NONE,
  'segment-kept': NONE,
  'segment-begun': NONE,
  'inline-stopped': NONE,
  'work-changed': closed,
  'work-ended': closed,
};

function requestIds(state: RunState): readonly string[] {
  return askingWork(state).map(({ request }) => request.id);
}

function toSteps(
  message: Message,
  { messages, usageByMessage, retriedByMessage }: Projection,
): readonly DurableStep[] {
  const cost = usageByMessage.get(message.n);
  const usage = cost && { usage: cost };
  const attempts = retriedByMessage.get(message.n);
  const retried = attempts && { retried: attempts };
  switch (message.role) {
    case 'user':
      // The message that explains a refused answer is part of the step of that answer.
      if (message.side) return [];
      return message.compacts === undefined
        ? [{ type: 'message-added', message }]
        : [{ type: 'transcript-compacted', message, ...usage }];
    case 'assistant': {
      if (message.supplied || message.origin) return [{ type: 'message-added', message }];
      if (!message.side) return [{ type: 'model-replied', message, ...usage, ...retried }];
      // The message to the model directly follows the answer.
      const problem = messages.find(({ n }) => n === message.n + 1)?.text ?? '';
      return [{ type: 'answer-refused', message, problem, ...usage, ...retried }];
    }
    case 'tool': {
      const tool = findCall(message.callId, messages)?.name ?? '';
      return [{ type: 'call-finished', tool, message, ...retried }];
    }
  }
}
