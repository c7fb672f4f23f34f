import { isObject, parseJson } from '../json.js';
import type { Outcome } from '../outcome.js';
import { FIRST_LINK, chain, messageTokens, toPromptMessage } from '../transcript/transcript.js';
import type { AssistantMessage, Message } from '../transcript/messages.js';
import { appendMessage } from '../change.js';
import type { RunState } from '../state.js';
import type { GraphDefinition } from './definition.js';
import { graphOf } from './node-tool.js';
import { answerText } from './values.js';

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
    // It is nested deeper than the stack, so it is no answer of a graph.
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
