import { defineConfig, type Config } from '../config.js';
import { fileTools } from '../tools/files/file-tools.js';
import { defineAgent, type Agent } from './define-agent.js';

const INSTRUCTIONS = `You work on the files of one folder and answer questions about them.
Look before you answer: list_files and search_text find what matters, read_file shows it. Never guess
what a file holds.
Paths are relative to the folder. Read only what you need; a large file in parts.
Write a file only when you are asked to, and say which one you wrote.
Answer briefly, in the language of the question, and name the files that you rely on.`;

const STANDARD_MODEL = 'gpt-4.1-mini';

type Environment = Readonly<Record<string, string | undefined>>;

/** The agent that is there without a configuration: it answers questions about the files below `root`. */
export function filesAgent(root: string, env: Environment): Agent {
  return defineAgent({
    name: 'files',
    instructions: INSTRUCTIONS,
    model: modelAtHand(env),
    tools: fileTools({ root }),
  });
}

/** The configuration where there is no file. */
export function builtInConfig(root: string, env: Environment): Config {
  return defineConfig({ agents: [filesAgent(root, env)] });
}

/** Without a key the demo model, which says what it is. */
function modelAtHand(env: Environment): string {
  const named = env['PERDURE_MODEL']?.trim();
  if (named) return named;
  const hasProvider = Boolean(env['OPENAI_API_KEY']?.trim() || env['OPENAI_BASE_URL']?.trim());
  return hasProvider ? STANDARD_MODEL : 'demo';
}
