// Events of a run become what its page shows. The same events always give the same view.

/** The title of the note that replaces older messages. A model has written it. */
export const SUMMARY = 'summary of older messages';

export const emptyView = () => ({
  agent: '',
  open: false,
  start: null,
  end: null,
  last: null,
  items: [],
  calls: new Map(),
  live: null,
  nodes: new Map(),
  requests: new Set(),
  outcome: null,
  version: 0,
});

/** Adds events to a view in place, and returns the view as a new object, so that it renders again. */
export function addEvents(view, events) {
  for (const event of events) addEvent(view, event);
  return { ...view, version: view.version + 1 };
}

/** The decisions with which a person gives the result of a call, as in `src/core/state/decisions.ts`. */
const GIVES_RESULT = ['answer', 'happened'];

const itemOf = ({ node, item }) => (item === undefined ? node : `${node}, item ${item}`);

const attemptOf = ({ turn, step, attempt }) => `${turn}.${step}.${attempt}`;

function addEvent(view, event) {
  const { at, type } = event;
  const since = view.last ?? at;
  if (at !== undefined) {
    view.start ??= at;
    view.last = at;
  }
  const push = (item) => view.items.push({ at, from: at, to: at, ...item });
  switch (type) {
    case 'run-started':
      Object.assign(view, { agent: event.agent, open: event.open });
      return;
    case 'turn-begun':
      return push({ type: 'turn', turn: event.turn });
    case 'message-added': {
      const { role, text, origin, by, door } = event.message;
      if (role === 'user' && origin === undefined) return push({ type: 'user', text, by, door });
      // No model of this run wrote it: the sender supplied it, or it is the answer of the graph.
      if (role === 'assistant') return push({ type: 'reply', text, calls: [], author: origin === 'graph' ? 'answer' : 'assistant' });
      return push({ type: 'note', text, title: origin === 'retrieved' ? 'document' : 'to the model' });
    }
    case 'delta': {
      const key = attemptOf(event);
      if (view.live?.key !== key) {
        const struck = view.live && view.live.text !== '' ? [...view.live.struck, view.live.text] : (view.live?.struck ?? []);
        view.live = { key, text: '', thought: '', struck, from: view.last };
      }
      if (event.kind === 'text') view.live.text += event.text;
      else view.live.thought += event.text;
      return;
    }
    case 'superseded':
      if (view.live) {
        const struck = view.live.text === '' ? view.live.struck : [...view.live.struck, view.live.text];
        view.live = { ...view.live, key: '', text: '', thought: '', struck };
      }
      return;
    case 'node-delta': {
      const key = itemOf(event);
      const known = view.nodes.get(key);
      const isSame = event.offset > 0 && known?.reply === event.reply && known.attempt === event.attempt;
      const before = isSame ? known : { reply: event.reply, attempt: event.attempt, text: '', thought: '', struck: known?.struck ?? [] };
      const part = event.kind === 'text' ? 'text' : 'thought';
      view.nodes.set(key, { ...before, title: key, [part]: before[part] + event.text });
      return;
    }
    case 'node-superseded': {
      const known = view.nodes.get(itemOf(event));
      if (known?.reply !== event.reply || known.attempt !== event.attempt) return;
      view.nodes.set(itemOf(event), { ...known, text: '', thought: '', struck: known.text === '' ? known.struck : [...known.struck, known.text] });
      return;
    }
    case 'node-replied':
      view.nodes.delete(itemOf(event));
      return push({ type: 'wrote', title: itemOf(event), text: event.text, usage: event.usage, from: since });
    case 'model-replied': {
      const { text, calls = [] } = event.message;
      const struck = view.live?.struck ?? [];
      view.live = null;
      push({ type: 'reply', text, calls, struck, usage: event.usage, retried: event.retried, begun: true, from: since });
      for (const call of calls) {
        const item = { type: 'call', at, from: at, to: null, call, state: 'planned', result: null };
        view.calls.set(call.id, item);
        view.items.push(item);
      }
      return;
    }
    case 'answer-refused':
      view.live = null;
      return push({ type: 'refused', text: event.message.text, problem: event.problem, retried: event.retried, begun: true, from: since });
    case 'call-begun': {
      const item = view.calls.get(event.call.id) ?? { type: 'call', at, call: event.call, result: null };
      if (!view.calls.has(event.call.id)) view.items.push(item);
      Object.assign(item, { from: at, to: null, state: 'works', begun: true });
      view.calls.set(event.call.id, item);
      return;
    }
    case 'call-finished': {
      const { message, tool } = event;
      const id = message.callId;
      const item = view.calls.get(id) ?? { type: 'call', at, from: at, call: { id, name: tool, arguments: '' } };
      if (!view.calls.has(id)) view.items.push(item);
      view.calls.set(id, item);
      // What was executed, if a person has changed the arguments.
      if (message.edited !== undefined) item.call = { ...item.call, summary: `${message.edited} (edited)` };
      return Object.assign(item, { to: at, state: message.ok === false || (message.ok === undefined && message.text.startsWith('{"error"')) ? 'failed' : 'done', result: message, retried: event.retried });
    }
    case 'request-raised': {
      view.requests.add(event.request);
      const call = view.calls.get(event.call);
      if (call) Object.assign(call, { state: 'asks', from: at, request: event.request });
      return push({ type: 'asked', request: event.request, kind: event.kind, why: event.why, to: null });
    }
    case 'request-closed': {
      view.requests.delete(event.request);
      const item = view.items.findLast((one) => one.type === 'asked' && one.request === event.request);
      if (item) Object.assign(item, { to: at, as: event.as, by: event.by, door: event.door });
      for (const call of view.calls.values()) {
        if (call.request !== event.request) continue;
        if (GIVES_RESULT.includes(event.as)) call.given = { by: event.by, door: event.door };
        // The time of the call is without the wait for the person, also if it is not executed.
        if (call.state === 'asks') Object.assign(call, { state: 'planned', from: at });
      }
      return;
    }
    case 'work-blocked':
      return push({ type: 'blocked', on: event.on, reason: event.reason, text: event.message, to: null });
    case 'work-unblocked': {
      const item = view.items.findLast((one) => one.type === 'blocked' && one.on === event.on);
      if (item) item.to = at;
      return;
    }
    case 'node-begun':
      return push({ type: 'node', node: event.node, visit: event.visit, to: null });
    case 'node-ended': {
      view.nodes.clear();
      const { node, exit, items, interrupted, by } = event;
      const ended = { to: at, exit, items, interrupted, ms: interrupted || by !== undefined ? undefined : event.ms };
      const item = view.items.findLast((one) => one.type === 'node' && one.node === node && one.to === null);
      // A node that takes no time only ends.
      if (!item) return push({ type: 'node', node, ...ended });
      // The result of a call that the node itself makes is only in the graph's state.
      for (const call of view.calls.values()) if (call.state === 'works' && call.from >= item.from) Object.assign(call, { to: at, state: exit === 'failed' ? 'failed' : 'done' });
      Object.assign(item, ended);
      return;
    }
    case 'transcript-compacted':
      return push({ type: 'note', title: SUMMARY, text: event.message.text });
    case 'undo-changed':
      return push({ type: 'mark', text: `undo of ${event.tool}: ${event.state}${event.message ? `: ${event.message}` : ''}` });
    case 'run-paused':
      return push({ type: 'mark', text: 'paused' });
    case 'run-resumed':
      return push({ type: 'mark', text: 'resumed' });
    case 'turn-ended':
      view.nodes.clear();
      return push({ type: 'outcome', outcome: event.outcome, turn: event.turn });
    case 'run-ended':
      Object.assign(view, { end: at, outcome: event.outcome, live: null });
      view.nodes.clear();
      for (const item of view.items) item.to ??= at;
      return;
    default:
  }
}
