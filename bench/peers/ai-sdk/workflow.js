import { TemporalProvider } from '@temporalio/ai-sdk/workflow';
import { proxyActivities } from '@temporalio/workflow';
import { generateText, jsonSchema, stepCountIs, tool } from 'ai';
import { INSTRUCTIONS, MAX_STEPS, TOOL } from '../settings.js';

const provider = new TemporalProvider({ default: { startToCloseTimeout: '60s' } });
const { work } = proxyActivities({ startToCloseTimeout: '60s' });

export async function peer({ message }) {
  const { text } = await generateText({
    model: provider.languageModel('stub'),
    system: INSTRUCTIONS,
    prompt: message,
    tools: {
      work: tool({
        description: TOOL.description,
        inputSchema: jsonSchema(TOOL.parameters),
        execute: (call) => work(call),
      }),
    },
    maxRetries: 0,
    stopWhen: stepCountIs(MAX_STEPS),
  });
  return text;
}
