import { realpathSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import { perdureHome } from '../storage/files.js';
import { fileTools } from '../tools/files/file-tools.js';
import type { Agent } from './agent.js';
import { defineAgent } from './define-agent.js';

const INSTRUCTIONS = `You work on the files of one folder and answer questions about them.
Look before you answer: list_files and search_text find what matters, read_file shows it. Never guess
the contents of a file.
Paths are relative to the folder. Read only what you need, and read large files in parts.`;
const READING = `You cannot change files; if asked to, say that you cannot.
Answer briefly, in the language of the question, and name the files that you rely on.`;
const WRITING = `Write a file only if asked to, and name the file that you wrote.
Answer briefly, in the language of the question, and name the files that you rely on.`;

const STANDARD_MODEL = 'gpt-4.1-mini';

type Environment = Readonly<Record<string, string | undefined>>;

/** What the built-in agent `files` may do. By default it only reads, and reads no secrets. */
export interface FilePermissions {
  readonly write?: boolean;
  /** Patterns of names that it may write although they are refused by default. */
  readonly allowWrite?: readonly string[];
  /** Patterns of names that it may read although they are refused by default. */
  readonly allowRead?: readonly string[];
}

/**
 * Makes the agent that exists without a configuration: it answers questions about the files below
 * `root`.
 */
export function filesAgent(
  root: string,
  env: Environment,
  { write = false, allowWrite = [], allowRead = [] }: FilePermissions = {},
): Agent {
  return defineAgent({
    name: 'files',
    instructions: `${INSTRUCTIONS}\n${write ? WRITING : READING}`,
    model: defaultModel(env),
    tools: fileTools({ root, write, allowWrite, allowRead, deny: homeBelow(root, env) }),
  });
}

/**
 * Returns the pattern of PERDURE_HOME if it lies below the root: it holds tokens and messages of
 * runs.
 */
function homeBelow(root: string, env: Environment): readonly string[] {
  const path = relative(realPath(root), realPath(resolve(root, perdureHome(env))));
  const isBelow = path !== '' && path !== '..' && !path.startsWith(`..${sep}`);
  return isBelow ? [`./${path.split(sep).join('/')}`] : [];
}

/** Returns the real path, or the path itself if it does not exist. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Returns PERDURE_MODEL, a standard model if a provider is configured, or the demo model. */
function defaultModel(env: Environment): string {
  const named = env['PERDURE_MODEL']?.trim();
  if (named) return named;
  const hasProvider = Boolean(env['OPENAI_API_KEY']?.trim() || env['OPENAI_BASE_URL']?.trim());
  return hasProvider ? STANDARD_MODEL : 'demo';
}
