import type { JsonObject } from '../../src/core/json.js';
import type { Model, ModelReply } from '../../src/models/model.js';
import { reply, type Step } from '../../src/testing/steps.js';
import type { StubRequest } from '../../src/testing/requests.js';
import { firstUserText } from '../../src/testing/requests.js';
import { readScript, replyOf, type ScriptReply } from '../conversation.js';

/** The model inside the worker's process: it costs next to nothing, so that the engine is measured. */
export const scriptedModel: Model = {
  async call({ messages }) {
    const script = readScript(messages[0]?.text ?? '');
    const step = messages.filter(({ role }) => role === 'assistant').length;
    return modelReply(replyOf(script, step));
  },
};

function modelReply({ text, calls }: ScriptReply): ModelReply {
  return {
    text,
    calls: calls.map((call) => ({ name: call.tool, arguments: JSON.stringify(call.arguments) })),
    finish: calls.length > 0 ? 'calls' : 'stop',
    usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 0 },
  };
}

/** The same model as the stub server speaks it. */
export function stubAnswer(request: StubRequest): Step {
  const { text, calls } = replyOf(readScript(firstUserText(request)), request.assistantMessages);
  if (calls.length === 0) return reply.text(text);
  const asked = calls.map((call) => ({
    name: call.tool,
    arguments: { ...call.arguments } satisfies JsonObject,
  }));
  return reply.calls(asked, { text });
}
