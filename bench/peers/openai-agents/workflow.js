import { Agent } from '@openai/agents-core';
import { activityAsTool, TemporalOpenAIRunner } from '@temporalio/openai-agents/workflow';
import { INSTRUCTIONS, MAX_STEPS, TOOL } from '../settings.js';

export async function peer({ message }) {
  const agent = new Agent({
    name: 'worker',
    instructions: INSTRUCTIONS,
    model: 'stub',
    tools: [activityAsTool(TOOL, { startToCloseTimeout: '60s' })],
  });
  const options = { maxTurns: MAX_STEPS, runConfig: { tracingDisabled: true } };
  const { finalOutput } = await new TemporalOpenAIRunner().run(agent, message, options);
  return finalOutput;
}
