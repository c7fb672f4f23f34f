import path from 'node:path';
import { z } from 'zod';
import { checkOptions, type OptionSchemas } from '../../validation/check-options.js';
import type { Tool } from '../tool.js';
import { globMatcher } from './names.js';
import { listFilesTool } from './list-files.js';
import { nameGuard, type FileToolSettings } from './open-file.js';
import { readFileTool, writeFileTool } from './read-write-file.js';
import { searchTextTool } from './search-text.js';

const DEFAULT_MAX_FILE_BYTES = 16 * 1024 * 1024;
const DEFAULT_SKIP = ['.git', '.perdure', 'node_modules'];

const pattern = z.string().refine(isPattern, 'expected at most 64 alternatives in braces');
const patterns = z.array(pattern).optional();

const fileToolsOptions = z.strictObject({
  root: z.string().min(1, 'expected the folder that the tools are confined to'),
  write: z.boolean().optional(),
  maxFileBytes: z.int().min(1).optional(),
  skip: z.array(z.string()).optional(),
  allowRead: patterns,
  allowWrite: patterns,
  deny: patterns,
} satisfies OptionSchemas<FileToolsOptions>);

/** Options of `fileTools`. */
export interface FileToolsOptions {
  /** The folder that the tools are confined to, relative to the process's working directory. */
  readonly root: string;
  /** Whether to add `write_file`; default false: the tools only read. */
  readonly write?: boolean;
  /**
   * The size in bytes of the largest file that is searched, counted to its end, or written; default
   * 16 MiB.
   */
  readonly maxFileBytes?: number;
  /**
   * Names of folders that are entered only if `path` names them, and never written to; default
   * `.git` (its hooks are programs), `node_modules`, and perdure's own `.perdure`.
   */
  readonly skip?: readonly string[];
  /**
   * Patterns, such as `.env.example`, of files that may be read although their names suggest
   * secrets (`.env*`, keys, `.npmrc`, `.git/config`, the state of perdure). Default: none.
   */
  readonly allowRead?: readonly string[];
  /**
   * Patterns, such as `src/**` or `package.json`, of files that may be written although programs
   * execute or obey files of these names: code, scripts, settings of tools, lock files, and names
   * that begin with a dot. Writing them controls what happens on this machine. A pattern without
   * `/` allows a name in any folder, not the folder itself; a wildcard does not match a leading
   * dot. Default: none.
   */
  readonly allowWrite?: readonly string[];
  /**
   * Patterns of paths that are neither read nor written, regardless of what else is allowed.
   * Default: none.
   */
  readonly deny?: readonly string[];
}

/**
 * Makes the tools `list_files`, `read_file`, and `search_text`, plus `write_file` with `write`,
 * confined to one folder.
 *
 * No path, symbolic link, or special file leads out of `root`, makes a tool hang, or shows what is
 * outside, not even if a link replaces a folder during a call. The tools write nothing that a
 * program executes, and read no secrets, unless the options allow it. Throws an `InputError` if an
 * option is invalid; each call checks whether `root` exists.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { fileTools } from 'perdure/tools';
 *
 * export const writer = defineAgent({
 *   name: 'writer',
 *   instructions: 'Keep the notes.',
 *   tools: [...fileTools({ root: 'notes', write: true })],
 * });
 * ```
 */
export function fileTools(options: FileToolsOptions): readonly Tool[] {
  checkOptions('fileTools', { schema: fileToolsOptions, options });
  const { root, maxFileBytes = DEFAULT_MAX_FILE_BYTES, skip = DEFAULT_SKIP } = options;
  const { allowRead = [], allowWrite = [], deny = [], write = false } = options;
  const settings: FileToolSettings = {
    root: path.resolve(root),
    maxFileBytes,
    skip: new Set(skip),
    guard: nameGuard({ allowRead, allowWrite, deny, skip }),
  };
  return [
    listFilesTool(settings),
    readFileTool(settings),
    searchTextTool(settings),
    ...(write ? [writeFileTool(settings)] : []),
  ];
}

function isPattern(text: string): boolean {
  try {
    globMatcher(text);
    return true;
  } catch {
    return false;
  }
}
