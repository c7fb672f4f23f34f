import path from 'node:path';
import type { Tool } from '../tool.js';
import { listFilesTool } from './list-files.js';
import type { FileToolSettings } from './options.js';
import { readFileTool } from './read-file.js';
import { searchTextTool } from './search-text.js';
import { writeFileTool } from './write-file.js';

const DEFAULT_MAX_FILE_BYTES = 16 * 1024 * 1024;
const DEFAULT_SKIP = ['.git', '.perdure', 'node_modules'];

export interface FileToolsOptions {
  /** The folder that the tools are confined to; relative to the process's folder. */
  readonly root: string;
  /** Bytes up to which a file is searched, counted to its end, and written; 16 MiB by default. */
  readonly maxFileBytes?: number;
  /**
   * Names of folders that are not entered unless they are named as path, and never written to; by
   * default `.git` (its hooks are programs), `node_modules` and perdure's own `.perdure`.
   */
  readonly skip?: readonly string[];
}

/**
 * `list_files`, `read_file`, `search_text` and `write_file`, confined to one folder.
 *
 * Contract: no path, symbolic link or special file leads out of `root`, makes a tool hang, or shows
 * what is outside. Throws when an option is not possible; whether `root` exists is seen at each call.
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
  const settings: FileToolSettings = {
    root: path.resolve(root),
    maxFileBytes,
    skip: new Set(skip),
  };
  return [
    listFilesTool(settings),
    readFileTool(settings),
    searchTextTool(settings),
    writeFileTool(settings),
  ];
}
