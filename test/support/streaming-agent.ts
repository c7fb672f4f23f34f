import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Model, ModelContext, ModelReply, ModelRequest } from '../../src/models/model.js';
import { wait } from '../../src/tools/built-in/workflow-tools.js';

interface ScriptContext extends ModelContext {
  readonly request: ModelRequest;
  /** The number of the call among those with this first message, from 1. */
  readonly number: number;
  /** Streams a delta before the reply is complete. */
  readonly emit: (text: string) => void;
}

/** Streams a reply in deltas, and returns its final text. */
export type ReplyScript = (speaking: ScriptContext) => Promise<string | ModelReply>;

export interface StreamingAgent {
  readonly agent: Agent;
  readonly model: Model;
  /** Speakers by the first message of the run. */
  on(message: string, script: ReplyScript): void;
}

/** An agent whose model streams what a test chooses, when the test chooses. */
export function createStreamingAgent(): StreamingAgent {
  const scripts = new Map<string, ReplyScript>();
  const numbers = new Map<string, number>();
  return {
    agent: defineAgent({
      name: 'talker',
      instructions: 'talk',
      model: 'talk',
      tools: [wait()],
    }),
    model: {
      async call(request, context) {
        const message = request.messages.find(({ role }) => role === 'user')?.text ?? '';
        const number = (numbers.get(message) ?? 0) + 1;
        numbers.set(message, number);
        const script = scripts.get(message);
        if (script === undefined) throw new Error(`no reply is scripted for "${message}"`);
        const emit = (text: string): void => context.onDelta?.({ kind: 'text', text });
        const result = await script({ request, number, emit, ...context });
        return typeof result === 'string' ? answered(result) : result;
      },
    },
    on: (message, script) => void scripts.set(message, script),
  };
}

function answered(text: string): ModelReply {
  const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
  return { text, calls: [], finish: 'stop', usage };
}
