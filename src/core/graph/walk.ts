import type { AgentDefinition } from '../definition/definition.js';
import { END } from '../definition/node-data.js';
import type { GraphDefinition } from '../definition/graph-definition.js';
import { type GraphNode, callsModel, exitAtOnce } from '../definition/node-kinds.js';
import type { Incoming } from '../input/inbox.js';
import { EMPTY_PLAN, planValue } from '../plan/plan.js';
import { reportText } from '../plan/results.js';
import { appendMessage, completed, endTurn, failed } from '../state/change.js';
import { type GraphState, type NodeVisits, type RunState, decidesItself } from '../state/state.js';
import { findNode, graphOf } from '../state/turn-definition.js';
import { type JsonObject, answerText, evaluateText, isObject, parseJson } from '../text/json.js';
import { type AssistantMessage, type Message, saidTexts } from '../transcript/messages.js';
import type { Outcome } from '../transcript/outcome.js';
import { FIRST_LINK, chain, messageTokens, toPromptMessage } from '../transcript/transcript.js';

/** Maximum instant nodes passed in a row. Only an endless loop exceeds it. */
const MAX_PASSED = 1_000;

/** Returns the state of a graph before a run's first turn. */
function initialGraph(graph: GraphDefinition): GraphState {
  return { values: graph.initial, at: null, visited: [] };
}

/** Begins a turn's pass through the graph: its messages and their input are added to the state. */
export function beginPass(
  state: RunState,
  { taken, at }: { readonly taken: readonly Incoming[]; readonly at: number },
): RunState {
  const graph = graphOf(state);
  if (graph === undefined) return withoutNode(state);
  const before = state.graph ?? initialGraph(graph);
  // A fork goes on with the turn of another run.
  const { begins } = before;
  // The graph may be a newer one with different fields.
  const stays = (name: string): boolean =>
    graph.fields.includes(name) && (begins !== undefined || !graph.perTurn.includes(name));
  const said = taken.map(({ text }) => text).join('\n\n');
  const values = Object.fromEntries([
    ...Object.entries(graph.initial),
    ...Object.entries(before.values).filter(([name]) => stays(name)),
    ...(begins === undefined ? historyEntry(state, graph) : []),
    ...(graph.messageTo === undefined || (begins !== undefined && said === '')
      ? []
      : [[graph.messageTo, said] as const]),
    ...taken.flatMap(({ input }) => Object.entries(input ?? {})),
  ]);
  const visited = before.visited.flatMap((visits) =>
    findNode(graph, visits.node) === undefined ? [] : [{ ...visits, inTurn: 0 }],
  );
  const { conversations } = before;
  const begun = {
    ...state,
    graph: { values, at: null, visited, ...(conversations && { conversations }) },
  };
  const problems = taken.map(({ input = {} }) => inputProblem(state.config.definition, input));
  const message = problems.find((problem) => problem !== null);
  if (message) return endTurn(begun, failed(begun, { reason: 'input', message }));
  if (begins !== undefined && findNode(graph, begins) === undefined)
    return withoutNode(begun, begins);
  return enter(begun, begins ?? graph.start, at);
}

/** Ends the turn of a fork whose agent has no such node now; other runs are returned unchanged. */
function withoutNode(state: RunState, begins = state.graph?.begins): RunState {
  if (begins === undefined) return state;
  const { name, graph } = state.config.definition;
  const nodes = graph?.nodes.map((node) => node.name).join(', ');
  const has = nodes === undefined ? 'which is not a graph' : `whose nodes are now ${nodes}`;
  const message = `fork.at: expected a node of "${name}", ${has}; got "${begins}"`;
  return endTurn(state, failed(state, { reason: 'input', message }));
}

/**
 * Returns the problem with a graph's input, or null if there is none. The input of an agent without
 * a graph has none.
 */
export function inputProblem(
  { name, graph }: Pick<AgentDefinition, 'name' | 'graph'>,
  input: object,
): string | null {
  if (graph === undefined) return null;
  const fields = Object.keys(input);
  const unknown = fields.find((field) => !graph.fields.includes(field));
  if (unknown !== undefined) {
    return `input.${unknown}: the state of graph "${name}" has no such field; its fields are ${graph.fields.join(', ')}`;
  }
  // An external plan or result would be mistaken for the run's own.
  const own = graph.nodes.find(
    (node): node is Extract<GraphNode, { kind: 'plan' | 'execute' }> =>
      (node.kind === 'plan' || node.kind === 'execute') && fields.includes(node.save),
  );
  if (own === undefined) return null;
  return `input.${own.save}: only the node "${own.name}" of graph "${name}" fills this field; omit it`;
}

/**
 * Returns which part of a run's start would have no effect, or null: a message that nothing in the
 * graph reads, or the input of an agent that is not a graph.
 */
export function droppedPart(
  { name, graph }: { readonly name: string; readonly graph?: GraphDefinition | undefined },
  { message, input }: { readonly message?: unknown; readonly input?: unknown },
): string | null {
  if (graph === undefined) {
    if (input === undefined) return null;
    return `input: agent "${name}" is not a graph and would never see it; give what the model is to read as \`message\`, or \`context\` to its tools`;
  }
  if (message === undefined) return null;
  const fields = graph.fields.join(', ');
  const { messageTo, historyTo } = graph;
  if (messageTo === undefined && historyTo === undefined && !graph.nodes.some(callsModel)) {
    return `message: nothing in graph "${name}" reads it; omit it, and give \`input\` with fields of its state (${fields})`;
  }
  if (messageTo === undefined || !isObject(input) || input[messageTo] === undefined) return null;
  return `input.${messageTo}: the message of a run of graph "${name}" fills this field; give one of the two`;
}

function historyEntry(
  { transcript, turn }: RunState,
  { historyTo }: GraphDefinition,
): readonly (readonly [string, readonly JsonObject[]])[] {
  if (historyTo === undefined) return [];
  const { messages, latest = [] } = transcript;
  // The first messages of several that were sent as one are history, too: they have no id.
  const isOfTurn = (message: Message): boolean =>
    message.turn === turn.number &&
    message.role === 'user' &&
    (message.id !== undefined || message.origin !== undefined);
  const earlier = saidTexts(messages.filter((message) => !isOfTurn(message)));
  const texts = [...latest, ...earlier].slice(-historyTo.last);
  return [[historyTo.field, texts.map(({ role, text }) => ({ role, text }))]];
}

/**
 * Leaves the current node by an exit, with a patch of the state, and enters the next node. Instant
 * nodes are passed immediately. `at`: Unix time in ms.
 */
export function leave(
  state: RunState,
  {
    exit,
    patch = {},
    at,
  }: { readonly exit: string; readonly patch?: JsonObject; readonly at: number },
): RunState {
  const graph = graphOf(state);
  const place = state.graph?.at;
  const node = graph && place && findNode(graph, place.node);
  if (!state.graph || !node || !place) return state;
  const values = { ...state.graph.values, ...patch };
  const visited = state.graph.visited.map((visits) =>
    visits.node === node.name ? withExit(visits, exit, at - place.since) : visits,
  );
  const { interrupted: _, ...rest } = state.graph;
  const left = { ...state, graph: { ...rest, values, at: null, visited } };
  const target = node.exits.find(({ name }) => name === exit)?.to;
  return target === undefined ? withoutExit(left, node, exit) : enter(left, target, at);
}

/** Ends the turn, because the node has no such exit. */
function withoutExit(state: RunState, node: GraphNode, exit: string): RunState {
  const message = `node "${node.name}" has no exit "${exit}"`;
  return endTurn(state, failed(state, { reason: 'error', message }));
}

function withExit(visits: NodeVisits, exit: string, ms: number): NodeVisits {
  const known = visits.taken.some((one) => one.exit === exit);
  const taken = known
    ? visits.taken.map((one) => (one.exit === exit ? { ...one, count: one.count + 1 } : one))
    : [...visits.taken, { exit, count: 1 }];
  return { ...visits, ms: visits.ms + Math.max(0, ms), taken };
}

/** Enters a node, or ends the turn. */
function enter(state: RunState, target: string, at: number, passed = 0): RunState {
  if (target === END) return endPass(state);
  const graph = graphOf(state);
  const node = graph && findNode(graph, target);
  if (!state.graph || node === undefined || passed > MAX_PASSED) {
    const message = `the graph cannot enter node "${target}"`;
    return endTurn(state, failed(state, { reason: 'error', message }));
  }
  const known = state.graph.visited.find((visits) => visits.node === target);
  const before = known ?? { node: target, inTurn: 0, total: 0, ms: 0, taken: [] };
  const isCapped = node.maxVisits !== undefined && before.inTurn >= node.maxVisits;
  const visits = isCapped
    ? before
    : { ...before, inTurn: before.inTurn + 1, total: before.total + 1 };
  const visited = known
    ? state.graph.visited.map((one) => (one.node === target ? visits : one))
    : [...state.graph.visited, visits];
  const place = { node: target, visit: visits.total, since: at };
  const entered = { ...state, graph: { ...state.graph, at: place, visited } };
  const exit = isCapped ? 'capped' : exitAtOnce(node, entered.graph.values);
  if (exit !== null) return passThrough(entered, { node, exit, at, passed });
  return prepared(entered, node, at);
}

/** Returns the graph's state, prepared for a node that asks the model. */
function prepared(
  state: RunState & { readonly graph: GraphState },
  node: GraphNode,
  at: number,
): RunState {
  const { graph } = state;
  if (node.kind === 'plan') {
    // Each visit makes a new plan.
    const { confirmed: _, ...rest } = graph;
    // The actions of another plan may have the same ids, so its results are also dropped.
    const fresh = (graphOf(state)?.nodes ?? []).flatMap((other): [string, JsonObject][] =>
      other.kind === 'execute' && other.plan === node.save ? [[other.save, {}]] : [],
    );
    const own = { [node.save]: planValue(EMPTY_PLAN), ...Object.fromEntries(fresh) };
    return { ...state, graph: { ...rest, values: { ...graph.values, ...own } } };
  }
  if (node.kind === 'decide') return withMessage(state, node, at);
  if (node.kind !== 'answer') return state;
  const error = graphOf(state)?.errorTo;
  const text = reportText({
    ...node,
    values: graph.values,
    error,
    unattended: decidesItself(state),
  });
  return text === null
    ? state
    : appendMessage(state, at, { role: 'user', text, origin: 'perdure' });
}

/** Adds the message of a node to the conversation, if it has one and it is not empty. */
function withMessage(
  state: RunState & { readonly graph: GraphState },
  { name, message }: Extract<GraphNode, { kind: 'decide' }>,
  at: number,
): RunState {
  const text = message === undefined ? '' : evaluateText(message, { state: state.graph.values });
  if (text.trim() === '') return state;
  return appendMessage(state, at, { role: 'user', text, origin: 'graph', node: name });
}

/** Passes through a node that takes no time. */
function passThrough(
  state: RunState,
  { node, exit, at, passed }: { node: GraphNode; exit: string; at: number; passed: number },
): RunState {
  if (!state.graph) return state;
  const visited = state.graph.visited.map((visits) =>
    visits.node === node.name ? withExit(visits, exit, 0) : visits,
  );
  const left = { ...state, graph: { ...state.graph, at: null, visited } };
  const target = node.exits.find(({ name }) => name === exit)?.to;
  if (target === undefined) return withoutExit(left, node, exit);
  return enter(left, target, at, passed + 1);
}

/** Completes the turn at the end of the pass, with the state as its output. */
function endPass(state: RunState): RunState {
  const graph = graphOf(state);
  const values = state.graph?.values ?? {};
  const field = graph?.answerFrom;
  const found =
    field === undefined
      ? values
      : (Object.entries(values).find(([name]) => name === field)?.[1] ?? '');
  const text = typeof found === 'string' ? found : JSON.stringify(found);
  const answer = answerText(text);
  return endTurn(state, completed(state, { reason: 'answer', answer, output: values }));
}

/**
 * Joins the answer of a graph's turn that has ended to the conversation: it becomes a message of
 * the assistant, unless the graph's own model wrote it there. If the graph refused the turn's
 * messages, they and the answer leave the prompt. `at`: Unix time in ms.
 */
export function joinAnswer(state: RunState, at: number): RunState {
  const graph = graphOf(state);
  const { phase } = state.turn;
  if (graph?.answerJoins !== true || phase.type !== 'over') return state;
  const own = ownMessages(state);
  // Without a message from a person, there is nothing to answer in the conversation.
  if (!own.some((message) => message.role === 'user' && message.origin === undefined)) return state;
  const { outcome } = phase;
  const refused = hasRefused(graph, state) ? refuse(state, outcome, at) : null;
  if (refused !== null) return refused;
  const text = outcome.answer ?? '';
  const isAnswer = outcome.status === 'completed' || outcome.status === 'stopped';
  if (!isAnswer || text === '' || own.some((message) => isLastText(own, message, text)))
    return state;
  return appendMessage(state, at, { role: 'assistant', text, origin: 'graph' });
}

/** Returns the messages of the turn in memory. A fork has messages with numbers of other turns. */
function ownMessages({ transcript, turn, forkedFrom }: RunState): readonly Message[] {
  const from = forkedFrom?.at ?? 0;
  return [...transcript.keptAside, ...transcript.messages].filter(
    (message) => message.turn === turn.number && message.n >= from,
  );
}

/** Whether a message is the turn's last text of the model, and states the answer. */
function isLastText(own: readonly Message[], message: Message, answer: string): boolean {
  const last = own.findLast(
    (one) => one.role === 'assistant' && one.calls === undefined && one.supplied !== true,
  );
  return message === last && states(message.text, answer);
}

/** Whether a model's text states the answer: as it is, as JSON, or as the answer of a plan. */
function states(text: string, answer: string): boolean {
  if (text === answer || answerText(text) === answer) return true;
  if (!text.includes('{') && !text.includes('[')) return false;
  const value = parseJson(text);
  if (isObject(value) && value['answer'] === answer) return true;
  try {
    return JSON.stringify(value) === answer;
  } catch {
    // It is nested too deeply to serialize, so it cannot be an answer of a graph.
    return false;
  }
}

function hasRefused({ refusedFrom }: GraphDefinition, { graph }: RunState): boolean {
  return Object.entries(graph?.values ?? {}).some(
    ([name, value]) => name === refusedFrom && value === true,
  );
}

/**
 * Takes the turn's messages out of the prompt. The answer lists them, and also stays out of it.
 * Returns null if the prompt without them is unknown.
 */
function refuse(state: RunState, { answer }: Outcome, at: number): RunState | null {
  const { transcript, compaction, turn } = state;
  const { chunks, chunksHead = chunks.length === 0 ? FIRST_LINK : undefined } = transcript;
  const own = new Set(ownMessages(state).filter((message) => !isSummary(message)));
  const gone = transcript.messages.filter((message) => own.has(message));
  const [first] = gone;
  if (chunksHead === undefined || first === undefined) return null;
  const kept = transcript.messages.filter((message) => !own.has(message));
  const tokens = gone.reduce((sum, message) => sum + messageTokens(message), 0);
  const { next } = transcript;
  const place = { n: next, turn: turn.number, step: turn.spent.steps, at };
  const refuses = { from: Math.min(...gone.map(({ n }) => n)), to: next - 1 };
  const reply: AssistantMessage = {
    ...place,
    role: 'assistant',
    text: answer ?? '',
    origin: 'graph',
    refuses,
  };
  return {
    ...state,
    transcript: {
      ...transcript,
      next: next + 1,
      messages: kept,
      pruned: [...(transcript.pruned ?? []), ...gone, reply],
      head: kept.reduce((head, message) => chain(head, toPromptMessage(message)), chunksHead),
      tokens: transcript.tokens - tokens,
    },
    compaction: { ...compaction, promptTokens: Math.max(0, compaction.promptTokens - tokens) },
  };
}

function isSummary(message: Message): boolean {
  return message.role === 'user' && message.compacts !== undefined;
}
