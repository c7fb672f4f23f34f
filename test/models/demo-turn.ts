import { expect } from 'vitest';
import { CLOSING_INSTRUCTION } from '../../src/core/rules/documents.js';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { demoModel } from '../../src/models/demo/model.js';
import type { ModelReply, ModelRequest } from '../../src/models/model.js';
import { parseArguments } from '../../src/tools/arguments/arguments.js';
import { normalizeError } from '../../src/tools/result/plain.js';
import type { Tool } from '../../src/tools/tool.js';
import { callTool, toolNamed } from '../tools/support.js';

export function request(
  messages: readonly PromptMessage[],
  changes: Partial<ModelRequest> = {},
): ModelRequest {
  return {
    model: 'demo',
    instructions: 'Help.',
    messages,
    tools: [],
    toolChoice: 'auto',
    settings: {},
    ...changes,
  };
}

export async function getReply(given: ModelRequest): Promise<ModelReply> {
  return demoModel().call(given, { signal: new AbortController().signal });
}

export interface Turn {
  readonly answer: string;
  /** `tool {"arguments"}`, in order. */
  readonly calls: readonly string[];
  readonly messages: readonly PromptMessage[];
}

async function execute(tool: Tool, input: string): Promise<string> {
  const parsed = parseArguments(input);
  try {
    return await callTool(tool, parsed.ok ? parsed.value : {});
  } catch (error) {
    const { message } = normalizeError(error);
    return JSON.stringify({ error: { type: 'tool_error', message } });
  }
}

/** Plays one turn as the engine does: executes the calls and, at `maxSteps`, forces the ending. */
export async function ask(
  question: string,
  tools: readonly Tool[],
  { maxSteps = 10 }: { readonly maxSteps?: number } = {},
): Promise<Turn> {
  const messages: PromptMessage[] = [{ role: 'user', text: question }];
  const calls: string[] = [];
  for (let step = 1; step <= maxSteps; step += 1) {
    const reply = await getReply(request(messages, { tools }));
    if (reply.calls.length === 0) return { answer: reply.text, calls, messages };
    const modelRequest = reply.calls.map((call, index) => ({
      ...call,
      id: `call_1_${step}_${index}`,
      digest: '',
    }));
    messages.push({ role: 'assistant', text: reply.text, calls: modelRequest });
    for (const call of modelRequest) {
      calls.push(`${call.name} ${call.arguments}`);
      const text = await execute(toolNamed(tools, call.name), call.arguments);
      messages.push({ role: 'tool', text, callId: call.id });
    }
  }
  messages.push({ role: 'user', text: CLOSING_INSTRUCTION });
  const closing = await getReply(request(messages, { tools, toolChoice: 'none' }));
  expect(closing.calls).toEqual([]);
  return { answer: closing.text, calls, messages };
}
