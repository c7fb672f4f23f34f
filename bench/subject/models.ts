import { setTimeout as pause } from 'node:timers/promises';
import type { JsonObject } from '../../src/core/text/json.js';
import type { Model, ModelReply, ModelRequest, ModelUsage } from '../../src/models/model.js';
import { replyCalls, replyText, type Delivery, type Reply } from '../../src/testing/replies.js';
import { type StubRequest, getFirstUserText, listObjects } from '../../src/testing/wire-input.js';
import { readArguments, readScript, replyOf, type ScriptReply } from '../conversation.js';

/**
 * The model inside the worker's process. It costs next to nothing, so that only the engine is
 * measured.
 */
export const scriptedModel: Model = {
  async call({ messages }) {
    const script = readScript(messages[0]?.text ?? '');
    const step = messages.filter(({ role }) => role === 'assistant').length;
    return modelReply(replyOf(script, step));
  },
};

/** The same words as JSON, for an agent whose answers have a schema. */
export const extractingModel: Model = {
  async call(request, context) {
    const words = await scriptedModel.call(request, context);
    return { ...words, text: JSON.stringify({ text: words.text }) };
  },
};

/**
 * The delay before the first word, the delay between words, and the number of words, typical of
 * real models.
 */
const FIRST_WORD_MS = 100;
const WORD_MS = 10;
const WORDS = 40;

/** Begins each step with the time of its first delta: Unix time in ms, with fractions. */
export const speakingModel: Model = {
  async call(request, context) {
    const whole = await scriptedModel.call(request, context);
    const words: string[] = [];
    const say = (text: string): void => {
      words.push(text);
      context.onDelta?.({ kind: 'text', text });
    };
    await pause(FIRST_WORD_MS);
    say(`${performance.timeOrigin + performance.now()} `);
    for (let word = 1; word < WORDS; word += 1) {
      await pause(WORD_MS);
      say(`word ${word} `);
    }
    return { ...whole, text: words.join('') };
  },
};

/** A long run reports its position once every this many steps. */
export const MARK_STEPS = 50;
const SUMMARY = 'The steps so far were done. '.repeat(20);
const CHARACTERS_PER_TOKEN = 3;

/**
 * Called when this many steps of a conversation are done and the model is asked for the next one.
 */
export function stepEvent(name: string, steps: number): string {
  return `${name}: ${steps} steps`;
}

/**
 * The same for runs that outlive their prompt. It goes by the newest call, since older ones may
 * have been summarized, and counts the tokens of what it reads. It also writes the summaries.
 */
export function longRunModel(tell: (event: string) => void): Model {
  return {
    async call({ messages, tools }) {
      const usage = usageOf(messages);
      if (tools.length === 0) return { text: SUMMARY, calls: [], finish: 'stop', usage };
      const script = readScript(messages[0]?.text ?? '');
      const step = nextStep(messages);
      if (step % MARK_STEPS === 0) tell(stepEvent(script.name, step));
      return { ...modelReply(replyOf(script, step)), usage };
    },
  };
}

function nextStep(messages: ModelRequest['messages']): number {
  const last = messages.findLast(({ role }) => role === 'assistant');
  const [call] = (last?.role === 'assistant' && last.calls) || [];
  return call === undefined ? 0 : readArguments(call.arguments).step + 1;
}

function usageOf(messages: ModelRequest['messages']): ModelUsage {
  const characters = messages.reduce((sum, { text }) => sum + text.length, 0);
  const inputTokens = Math.ceil(characters / CHARACTERS_PER_TOKEN);
  return { inputTokens, outputTokens: 5, cachedTokens: 0 };
}

function modelReply({ text, calls }: ScriptReply): ModelReply {
  return {
    text,
    calls: calls.map((call) => ({ name: call.tool, arguments: JSON.stringify(call.arguments) })),
    finish: calls.length > 0 ? 'calls' : 'stop',
    usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 0 },
  };
}

/** About one token; only if a stream is requested. */
const SSE = { charactersPerEvent: 4 };
/** About 100 tokens a second, for conversations whose name begins with this. */
export const PACED = 'paced';
const PACE = { bytes: 200, every: 10 };

/**
 * Returns how many replies of the model a request has. Some clients send the text and the calls of a reply
 * as two messages.
 */
export function repliesIn(request: StubRequest): number {
  const { tools } = readScript(getFirstUserText(request));
  if (tools.length === 0) return request.assistantMessages;
  const messages = listObjects(request.body['messages']);
  return messages.filter((one) => Array.isArray(one['tool_calls'])).length;
}

/** The same model as served by the stub. */
export function stubAnswer(request: StubRequest, more: Delivery = {}): Reply {
  const script = readScript(getFirstUserText(request));
  const { text, calls } = replyOf(script, repliesIn(request));
  const delivery = { sse: SSE, ...(script.name.startsWith(PACED) && { drip: PACE }), ...more };
  if (calls.length === 0) return replyText(text, delivery);
  const toolCalls = calls.map((call) => ({
    name: call.tool,
    arguments: { ...call.arguments } satisfies JsonObject,
  }));
  return replyCalls(toolCalls, { text, ...delivery });
}
