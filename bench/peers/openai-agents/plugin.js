import { OpenAIProvider } from '@openai/agents-openai';
import { setTracingDisabled } from '@openai/agents-core';
import { OpenAIAgentsPlugin } from '@temporalio/openai-agents';
import OpenAI from 'openai';

/** Returns the plugin with a provider for the stub. Temporal alone retries, as with all sides. */
export async function createPlugin(baseURL) {
  // Its exporter would print every span, which costs more than the step.
  setTracingDisabled(true);
  const openAIClient = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
  return new OpenAIAgentsPlugin({
    modelProvider: new OpenAIProvider({ openAIClient, useResponses: false }),
    modelParams: { startToCloseTimeout: '60s' },
  });
}
