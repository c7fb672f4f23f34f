import { tellSafely, tellWhole } from '../deltas.js';
import { setTimeout as delay } from 'node:timers/promises';
import { readConversation } from './conversation.js';
import { planFor } from './question.js';
import { replay } from './replay.js';
import { estimateUsage } from '../estimate.js';
import { ModelError } from '../model-error.js';
import type { Model, ModelReply, ModelRequest } from '../model.js';

const DISCLOSURE =
  '(This answer is by the demo model: code that chooses tools by the words of a question. It is no ' +
  'LLM. For one, set OPENAI_API_KEY, or OPENAI_BASE_URL and PERDURE_MODEL.)';

export interface DemoModelOptions {
  /** Milliseconds before each reply, so that a run can be watched, or killed, in the middle; default 0. */
  readonly delayMs?: number;
}

/**
 * The model that needs no key: it truly calls the file tools and answers from what they said, so that
 * everything durable about a run can be tried. The same request always gets the same reply.
 */
export function demoModel(options: DemoModelOptions = {}): Model {
  const { delayMs = 0 } = options;
  if (!Number.isFinite(delayMs) || delayMs < 0) {
    throw new Error(`the demo model's delayMs must be 0 or more milliseconds, not ${delayMs}`);
  }
  return {
    call: async (request, { signal, onDelta }) => {
      await pause(delayMs, signal);
      const reply = demoReply(request);
      tellWhole(reply, tellSafely(onDelta));
      return reply;
    },
  };
}

function demoReply(request: ModelRequest): ModelReply {
  const { question, seen } = readConversation(request.messages);
  const decision = replay(planFor(question, request.tools), {
    seen,
    tools: new Set(request.tools.map(({ name }) => name)),
    mayCall: request.toolChoice !== 'none',
  });
  const reply: ModelReply =
    decision.type === 'answer'
      ? { text: `${decision.text}\n\n${DISCLOSURE}`, calls: [], finish: 'stop' }
      : {
          text: '',
          calls: decision.calls.map(({ tool, input }) => ({
            name: tool,
            arguments: JSON.stringify(input),
          })),
          finish: 'calls',
        };
  return { ...reply, usage: estimateUsage(request, reply) };
}

async function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  try {
    if (delayMs > 0) await delay(delayMs, undefined, { signal });
    signal.throwIfAborted();
  } catch (error) {
    const details = { kind: 'retry', type: 'aborted' } as const;
    throw new ModelError('the call was broken off', details, { cause: error });
  }
}
