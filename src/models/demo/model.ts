import { setTimeout as delay } from 'node:timers/promises';
import { createEmitter, emitReply } from '../deltas.js';
import { estimateUsage } from '../usage-estimate.js';
import { ModelError } from '../model-error.js';
import type { Model, ModelReply, ModelRequest } from '../model.js';
import { readConversation } from './conversation.js';
import { exampleOf, nextMove } from './script.js';

/** Says what wrote the text, and how to call any tool of the agent. */
function disclosure({ tools }: Pick<ModelRequest, 'tools'>): string {
  const own = tools.find(({ name }) => !TOUR.includes(name)) ?? tools[0];
  const tour = TOUR.every((name) => tools.some((tool) => tool.name === name));
  const does = tour ? 'It lists the folder and reads one file' : 'It calls the tool that you name';
  const call =
    own === undefined ? '' : `; to call a tool, write its name and arguments: ${exampleOf(own)}`;
  return (
    `(The demo model wrote this: a fixed script, not an LLM. ${does}${call}. ` +
    'For an LLM, set OPENAI_API_KEY, or OPENAI_BASE_URL and PERDURE_MODEL.)'
  );
}

const TOUR: readonly string[] = ['list_files', 'read_file'];

export interface DemoModelOptions {
  /** Milliseconds before each reply, so a run can be watched or killed midway; default 0. */
  readonly delayMs?: number;
}

/**
 * Creates the model that needs no key. It follows a script: it lists the folder, reads the file
 * that the question names or else the README, and quotes both. If the question names another tool,
 * that tool is called instead, with the JSON object or the quoted values after its name. Equal
 * requests get equal replies.
 *
 * Throws an `Error` if `delayMs` is negative or not finite.
 */
export function demoModel({ delayMs = 0 }: DemoModelOptions = {}): Model {
  if (!Number.isFinite(delayMs) || delayMs < 0) {
    throw new Error(`delayMs: expected 0 or more milliseconds, got ${delayMs}`);
  }
  return {
    async call(request, { signal, onDelta }) {
      await pause(delayMs, signal);
      const reply = createReply(request);
      emitReply(reply, createEmitter(onDelta));
      return reply;
    },
  };
}

function createReply(request: ModelRequest): ModelReply {
  const { tools, toolChoice } = request;
  const conversation = readConversation(request.messages);
  const move = nextMove(conversation, { tools, mayCall: toolChoice !== 'none' });
  const reply: ModelReply =
    move.type === 'answer'
      ? { text: `${move.text}\n\n${disclosure(request)}`, calls: [], finish: 'stop' }
      : {
          text: '',
          calls: [{ name: move.tool, arguments: JSON.stringify(move.input) }],
          finish: 'calls',
        };
  return { ...reply, usage: estimateUsage(request, reply) };
}

async function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  try {
    if (delayMs > 0) await delay(delayMs, undefined, { signal });
    signal.throwIfAborted();
  } catch (error) {
    throw new ModelError('The call was aborted.', { kind: 'retry', type: 'aborted', cause: error });
  }
}
