import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isObject, textField } from '../../core/text/json.js';
import { nextCommand } from '../reports/next-command.js';
import { type Command, type CliContext, EXIT, UsageError, type ExitCode } from '../context.js';
import { CONFIG_NAMES } from '../input/load-config.js';
import { readManifest } from '../input/manifest.js';

const FILE = 'perdure.config.ts';
const AGENT = 'assistant';
// The tool and its test are files of their own, so that a replaced configuration breaks neither.
const TOOL = 'tools/count-words.ts';
const TEST = 'test/count-words.test.ts';
const VITEST_CONFIG = 'vitest.config.ts';
const MAX_NAME_CHARACTERS = 40;

/**
 * `init`: writes a starter configuration with its own task queue. Throws a `UsageError` if a
 * configuration exists, which `init` never overwrites, or if package.json cannot be read.
 */
export const init: Command<object> = { run: writeConfig };

async function writeConfig(context: CliContext): Promise<ExitCode> {
  const folder = process.cwd();
  const present = CONFIG_NAMES.find((name) => existsSync(join(folder, name)));
  if (present !== undefined) throw configExists(present);
  // Beside a broken one, the configuration could not be loaded.
  const manifest = await readManifest(folder);
  const taskQueue = context.options.taskQueue ?? createTaskQueue(folder, manifest);
  const text = starterConfig({ agent: AGENT, taskQueue });
  if (!(await wrote(join(folder, FILE), text))) throw configExists(FILE);
  const files = [FILE];
  if (await wrote(join(folder, 'tsconfig.json'), TSCONFIG)) files.push('tsconfig.json');
  for (const [name, content] of [
    [TOOL, STARTER_TOOL],
    [TEST, STARTER_TEST],
  ] as const) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    if (await wrote(join(folder, name), content)) files.push(name);
  }
  if (await wroteVitestConfig(folder)) files.push(VITEST_CONFIG);
  const type = await makeModule(folder, { manifest, written: files });
  context.note(`Wrote ${files.join(', ')}: agent "${AGENT}", task queue "${taskQueue}".`);
  if (type !== null) context.note(type);
  context.note('Try it:');
  // The configuration now sets the queue, so the commands below need no flag for it.
  const { taskQueue: _, ...options } = context.options;
  const here = { options, env: context.env };
  context.note(`  ${nextCommand(here, `run ${AGENT} "What is in this folder?"`)}`);
  context.note(
    `  ${nextCommand(here, 'dev')}   to run a worker that reloads when the code changes`,
  );
  const lacks = ['perdure', 'zod'].filter((name) => !hasPackage(folder, { name, manifest }));
  const install = lacks.length === 0 ? '' : `npm install ${lacks.join(' ')} && `;
  context.note(
    `  ${install}npm install --save-dev typescript vitest @types/node && npx tsc && npx vitest run   to check types and run the first test`,
  );
  if (context.options.json) context.out(JSON.stringify({ file: FILE, agent: AGENT, taskQueue }));
  return EXIT.completed;
}

/** The content of package.json; null if the folder has none. */
type Manifest = Awaited<ReturnType<typeof readManifest>>;

/** Whether the next `npm install` of a folder installs a package, or the folder finds it already. */
function hasPackage(
  folder: string,
  { name, manifest }: { readonly name: string; readonly manifest: Manifest },
): boolean {
  const listed = [manifest?.['dependencies'], manifest?.['devDependencies']];
  if (listed.some((all) => isObject(all) && Object.hasOwn(all, name))) return true;
  const above = dirname(folder);
  if (existsSync(join(folder, 'node_modules', name))) return true;
  return above !== folder && hasPackage(above, { name, manifest: null });
}

/** Writes a file unless it exists; returns whether it did. */
async function wrote(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Writes a configuration of vitest unless the folder has one; returns whether it did. */
async function wroteVitestConfig(folder: string): Promise<boolean> {
  const names = await readdir(folder);
  if (names.some((name) => /^(vite|vitest)\.config\.[cm]?[jt]s$/.test(name))) return false;
  return await wrote(join(folder, VITEST_CONFIG), STARTER_VITEST_CONFIG);
}

/**
 * Makes the folder a package of ES modules, which top-level `await` needs, unless it has code that
 * may be CommonJS. `written`: the files of `init`. Returns what to tell the user; null if nothing was
 * to do.
 */
async function makeModule(
  folder: string,
  { manifest, written }: { readonly manifest: Manifest; readonly written: readonly string[] },
): Promise<string | null> {
  const path = join(folder, 'package.json');
  if (manifest === null) {
    const first = { name: basename(folder).toLowerCase(), private: true, type: 'module' };
    await wrote(path, `${JSON.stringify(first, null, 2)}\n`);
    return 'Wrote package.json with "type": "module".';
  }
  if (manifest['type'] === 'module') return null;
  const names = await readdir(folder);
  if (
    names.some((name) => !written.includes(name) && /\.[cm]?[jt]sx?$/.test(name)) ||
    names.includes('src')
  ) {
    return 'package.json: expected "type": "module" for top-level await; set it, or name your programs *.mts';
  }
  await writeFile(path, `${JSON.stringify({ ...manifest, type: 'module' }, null, 2)}\n`);
  return 'Set "type": "module" in package.json, so that programs can use top-level await.';
}

function configExists(name: string): UsageError {
  return new UsageError(
    `init: expected a folder without a configuration, got ${name}; edit it, or use another folder`,
  );
}

/** Returns the project's name with a random suffix, because projects may share a server. */
function createTaskQueue(folder: string, manifest: Manifest): string {
  const name = textField(manifest ?? {}, 'name') || basename(folder);
  const slug = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_NAME_CHARACTERS)
    .replaceAll(/^-|-$/g, '');
  return `${slug || 'project'}-${randomBytes(4).toString('hex')}`;
}
/** Returns a text as a literal in the style of the starter files. */
function quoted(text: string): string {
  return /^[\w .-]*$/.test(text) ? `'${text}'` : JSON.stringify(text);
}

/** Returns the text of a starter configuration: an agent that reads files, and has a tool of the project. */
function starterConfig({ agent, taskQueue }: { agent: string; taskQueue: string }): string {
  return `import { defineAgent, defineConfig } from 'perdure';
import { fileTools, today } from 'perdure/tools';
import { countWords } from './tools/count-words.js';

export const assistant = defineAgent({
  name: ${quoted(agent)},
  description: 'Answers questions about the files of this project.',
  instructions: 'Answer questions about the files of this project. Look before you answer.',
  // Without a key, the demo model answers. It is code, not an LLM, and calls the tool that a message
  // names: count_words {"text":"one two"}
  model: process.env.PERDURE_MODEL ?? (process.env.OPENAI_API_KEY ? 'gpt-4.1-mini' : 'demo'),
  tools: [...fileTools({ root: '.' }), countWords, today()],
  limits: { steps: 20, costUsd: 0.5 },
});

export default defineConfig({
  // The task queue of this project's workers. Keep it once there are runs.
  taskQueue: ${quoted(taskQueue)},
  agents: [assistant],
});
`;
}

const STARTER_TOOL = `import { defineTool } from 'perdure';
import { z } from 'zod';

// A tool is a function with a schema. Its effect decides what happens to an interrupted call:
// 'read' and 'keyed' calls are retried, a 'once' call is not.
export const countWords = defineTool({
  name: 'count_words',
  description: 'Counts the words of a text.',
  input: z.object({ text: z.string() }),
  effect: 'read',
  execute: ({ text }) => text.split(/\\s+/).filter(Boolean).length,
});
`;

const TSCONFIG = `{
  "compilerOptions": {
    "target": "ES2023",
    "lib": ["ESNext"],
    "module": "nodenext",
    "strict": true,
    "skipLibCheck": true,
    "noEmit": true,
    "types": ["node"]
  },
  "include": ["*.ts", "src", "tools", "test"]
}
`;

const STARTER_VITEST_CONFIG = `import { defineConfig } from 'vitest/config';

// The first run in a process loads the workflow code, which may take seconds on a busy machine.
export default defineConfig({ test: { testTimeout: 30_000 } });
`;

const STARTER_TEST = `import { defineAgent } from 'perdure';
import { replyCall, replyText, runInMemory } from 'perdure/testing';
import { expect, test } from 'vitest';
import { countWords } from '../tools/count-words.js';

test('an agent counts words with the tool', async () => {
  const agent = defineAgent({ name: 'counter', instructions: 'Count.', tools: [countWords] });
  // The model is scripted. The loop and the tool are those of a real run.
  const run = await runInMemory(agent, {
    message: 'How many words has "one two"?',
    model: [replyCall('count_words', { text: 'one two' }), replyText('It has two words.')],
  });
  expect(run.outcome.answer).toBe('It has two words.');
  expect(run.modelRequests[1]?.messages.at(-1)?.text).toBe('2');
});
`;
