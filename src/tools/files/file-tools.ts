import path from 'node:path';
import type { Tool } from '../tool.js';
import { listFilesTool } from './list-files.js';
import { nameGuard } from './name-guard.js';
import type { FileToolSettings } from './options.js';
import { readFileTool } from './read-file.js';
import { searchTextTool } from './search-text.js';
import { writeFileTool } from './write-file.js';

const DEFAULT_MAX_FILE_BYTES = 16 * 1024 * 1024;
const DEFAULT_SKIP = ['.git', '.perdure', 'node_modules'];

export interface FileToolsOptions {
  /** The folder that the tools are confined to; relative to the process's folder. */
  readonly root: string;
  /** Adds `write_file`. Default false: the tools only read. */
  readonly write?: boolean;
  /** Bytes up to which a file is searched, counted to its end, and written; 16 MiB by default. */
  readonly maxFileBytes?: number;
  /**
   * Names of folders that are not entered unless they are named as path, and never written to; by
   * default `.git` (its hooks are programs), `node_modules` and perdure's own `.perdure`.
   */
  readonly skip?: readonly string[];
  /**
   * Patterns, such as `.env.example`, of files that may be read although their names say that they
   * hold secrets (`.env*`, keys, `.npmrc`, `.git/config`, the state of perdure). Default: none.
   */
  readonly allowRead?: readonly string[];
  /**
   * Patterns, such as `src/**` or `package.json`, of files that may be written although their names
   * say that programs execute or obey them: code, scripts, settings of tools, lock files, and what
   * begins with a dot. Whoever writes them decides what happens on this machine. A pattern without
   * `/` allows a name in any folder, not the folder; dots have to be written. Default: none.
   */
  readonly allowWrite?: readonly string[];
  /** Patterns of paths that are neither read nor written, whatever else is allowed. Default: none. */
  readonly deny?: readonly string[];
}

/**
 * `list_files`, `read_file` and `search_text`, with `write` also `write_file`, confined to one folder.
 *
 * Contract: no path, symbolic link or special file leads out of `root`, makes a tool hang, or shows
 * what is outside; a folder that is replaced by a link meanwhile does not either. Nothing is written
 * that a program executes, and no secret is read, unless it is allowed. Throws when an option is not
 * possible; whether `root` exists is seen at each call.
 *
 * @example
 * fileTools({ root: 'notes', write: true })
 */
export function fileTools(options: FileToolsOptions): readonly Tool[] {
  const { root, maxFileBytes = DEFAULT_MAX_FILE_BYTES, skip = DEFAULT_SKIP } = options;
  if (typeof root !== 'string' || root === '') {
    throw new Error('fileTools needs `root`, the folder that the tools are confined to');
  }
  if (!Number.isInteger(maxFileBytes) || maxFileBytes < 1) {
    throw new Error(
      `fileTools: \`maxFileBytes\` must be a whole number from 1, not ${maxFileBytes}`,
    );
  }
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
