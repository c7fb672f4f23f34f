import { createOpenAI } from '@ai-sdk/openai';
import { AiSdkPlugin } from '@temporalio/ai-sdk';

/** Returns the plugin with a provider for the stub, by Chat Completions. */
export async function createPlugin(baseURL) {
  const openai = createOpenAI({ baseURL, apiKey: 'none' });
  return new AiSdkPlugin({
    modelProvider: { ...openai, languageModel: (name) => openai.chat(name) },
  });
}
