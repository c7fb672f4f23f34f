import OpenAI from 'openai';
import { cancellationSignal } from '@temporalio/activity';
import { readArguments, resultOf, type ScriptReply } from '../conversation.js';
import { INSTRUCTIONS } from '../subject/agents.js';
import { scriptedModel } from '../subject/models.js';
import type { BareActivities, SentMessage } from './contract.js';
import { promptFor, wirePromptFor } from './conversation-so-far.js';

const TOOL: OpenAI.Chat.ChatCompletionTool = {
  type: 'function',
  function: {
    name: 'work',
    description: 'does a step',
    parameters: {
      type: 'object',
      properties: {
        name: { type: 'string' },
        step: { type: 'integer' },
        part: { type: 'integer' },
        bytes: { type: 'integer' },
      },
      required: ['name', 'step', 'part', 'bytes'],
      additionalProperties: false,
    },
  },
};

export function bareActivities(baseUrl: string): BareActivities {
  const client = new OpenAI({ baseURL: baseUrl, apiKey: 'none', maxRetries: 0 });
  return {
    async callModel({ model, message, step }) {
      return model === 'http'
        ? await askStub(client, wirePromptFor(message, step))
        : await askScripted(message, step);
    },
    callWith: (messages) =>
      askStub(client, [{ role: 'system', content: INSTRUCTIONS }, ...messages]),
    runTool: async (call) => resultOf(call),
    act: async (index) => index,
  };
}

async function askScripted(message: string, step: number): Promise<ScriptReply> {
  const { text, calls } = await scriptedModel.call(
    {
      model: 'scripted',
      instructions: INSTRUCTIONS,
      messages: promptFor(message, step),
      tools: [],
      toolChoice: 'auto',
      settings: {},
    },
    { signal: cancellationSignal() },
  );
  return {
    text,
    calls: calls.map((call) => ({ tool: call.name, arguments: readArguments(call.arguments) })),
  };
}

async function askStub(client: OpenAI, messages: SentMessage[]): Promise<ScriptReply> {
  const completion = await client.chat.completions.create(
    { model: 'stub', messages, tools: [TOOL], tool_choice: 'auto' },
    { signal: cancellationSignal() },
  );
  const answer = completion.choices[0]?.message;
  const calls = (answer?.tool_calls ?? []).filter((call) => call.type === 'function');
  return {
    text: answer?.content ?? '',
    calls: calls.map((call) => ({
      tool: call.function.name,
      arguments: readArguments(call.function.arguments),
    })),
  };
}
