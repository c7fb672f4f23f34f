/** The text of a configuration to begin with: one agent that reads files, and one tool of its own. */
export function starterConfig({ agent, taskQueue }: { agent: string; taskQueue: string }): string {
  return `import { defineAgent, defineConfig, defineTool, fileTools, today } from 'perdure';
import { z } from 'zod';

// A tool is a function with a schema. Its effect says what may happen when a call is interrupted:
// 'read' and 'keyed' calls are made again, a 'once' call never is by itself.
const countWords = defineTool({
  name: 'count_words',
  description: 'Counts the words of a text.',
  input: z.object({ text: z.string() }),
  effect: 'read',
  execute: ({ text }) => text.split(/\\s+/).filter(Boolean).length,
});

const assistant = defineAgent({
  name: ${JSON.stringify(agent)},
  description: 'Answers questions about the files of this project.',
  instructions: 'Answer questions about the files of this project. Look before you answer.',
  // Without a key the demo model answers: code, not an LLM.
  model: process.env.PERDURE_MODEL ?? (process.env.OPENAI_API_KEY ? 'gpt-4.1-mini' : 'demo'),
  tools: [...fileTools({ root: '.' }), countWords, today()],
  limits: { steps: 20, costUsd: 0.5 },
});

export default defineConfig({
  // Where the workers of this project listen. Keep it: runs live on it.
  taskQueue: ${JSON.stringify(taskQueue)},
  agents: [assistant],
});
`;
}
