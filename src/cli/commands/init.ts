import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isObject, parseJson, textField } from '../../core/json.js';
import { nextCommand } from '../reports/next-command.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { CONFIG_NAMES } from '../input/load-config.js';

const FILE = 'perdure.config.ts';
const AGENT = 'assistant';
const MAX_NAME_CHARACTERS = 40;

/**
 * `init`: writes a starter configuration with its own task queue. Throws a `UsageError` if a
 * configuration exists: `init` never overwrites one.
 */
export const init: Command<object> = { run: writeConfig };

async function writeConfig(context: CliContext): Promise<ExitCode> {
  const folder = process.cwd();
  const present = CONFIG_NAMES.find((name) => existsSync(join(folder, name)));
  if (present !== undefined) throw configExists(present);
  const taskQueue = context.options.taskQueue ?? (await createTaskQueue(folder));
  const text = starterConfig({ agent: AGENT, taskQueue });
  try {
    await writeFile(join(folder, FILE), text, { flag: 'wx' });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST')
      throw configExists(FILE);
    throw error;
  }
  context.note(`Wrote ${FILE}: agent "${AGENT}", task queue "${taskQueue}". Try it:`);
  // The configuration now sets the queue, so the commands below need no flag for it.
  const { taskQueue: _, ...options } = context.options;
  context.note(`  ${nextCommand({ options }, `run ${AGENT} "What is in this folder?"`)}`);
  context.note(
    `  ${nextCommand({ options }, 'dev')}   to run a worker that reloads when the code changes`,
  );
  if (context.options.json) context.out(JSON.stringify({ file: FILE, agent: AGENT, taskQueue }));
  return EXIT.completed;
}

function configExists(name: string): UsageError {
  return new UsageError(
    `init: expected a folder without a configuration, got ${name}; edit it, or use another folder`,
  );
}

/** Returns the project's name with a random suffix, because projects may share a server. */
async function createTaskQueue(folder: string): Promise<string> {
  const name = (await packageName(folder)) || basename(folder);
  const slug = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_NAME_CHARACTERS)
    .replaceAll(/^-|-$/g, '');
  return `${slug || 'project'}-${randomBytes(4).toString('hex')}`;
}

/** Returns the name in package.json; an empty string if the file is missing or unreadable. */
async function packageName(folder: string): Promise<string> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '');
  const parsed = parseJson(text);
  return isObject(parsed) ? textField(parsed, 'name') : '';
}

/** Returns the text of a starter configuration: an agent that reads files, and one custom tool. */
function starterConfig({ agent, taskQueue }: { agent: string; taskQueue: string }): string {
  return `import { defineAgent, defineConfig, defineTool } from 'perdure';
import { fileTools, today } from 'perdure/tools';
import { z } from 'zod';

// A tool is a function with a schema. Its effect decides what happens to an interrupted call:
// 'read' and 'keyed' calls are retried, a 'once' call is not.
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
  // Without a key, the demo model answers. It is code, not an LLM.
  model: process.env.PERDURE_MODEL ?? (process.env.OPENAI_API_KEY ? 'gpt-4.1-mini' : 'demo'),
  tools: [...fileTools({ root: '.' }), countWords, today()],
  limits: { steps: 20, costUsd: 0.5 },
});

export default defineConfig({
  // The task queue of this project's workers. Keep it: existing runs use it.
  taskQueue: ${JSON.stringify(taskQueue)},
  agents: [assistant],
});
`;
}
