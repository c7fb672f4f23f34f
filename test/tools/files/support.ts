import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Json } from '../../../src/core/text/json.js';
import { fileTools } from '../../../src/tools/files/file-tools.js';
import type { FileToolsOptions } from '../../../src/tools/files/file-tools.js';
import type { ToolContext } from '../../../src/tools/tool.js';
import { callFailure, callTool, temporaryFolder, toolNamed } from '../support.js';

/**
 * A folder with the file tools of its `root` folder; files next to `root` must stay unreachable.
 */
export interface Yard {
  readonly root: string;
  readonly outside: string;
  call(name: string, input: Json, context?: Partial<ToolContext>): Promise<string>;
  /** Returns the error with which the call fails. */
  failure(name: string, input: Json, context?: Partial<ToolContext>): Promise<Error>;
  /** Writes files by their path from the root. */
  put(files: Readonly<Record<string, string | Buffer>>): Promise<void>;
}

export async function yard(options: Partial<FileToolsOptions> = {}): Promise<Yard> {
  const folder = await temporaryFolder();
  const root = path.join(folder, 'root');
  const outside = path.join(folder, 'outside');
  await mkdir(root);
  await mkdir(outside);
  await writeFile(path.join(outside, 'secret.txt'), 'the secret\n');
  const tools = fileTools({ root, write: true, ...options });
  return {
    root,
    outside,
    call: (name, input, context) => callTool(toolNamed(tools, name), input, context),
    failure: (name, input, context) => callFailure(toolNamed(tools, name), input, context),
    put: async (files) => {
      for (const [name, content] of Object.entries(files)) {
        await mkdir(path.dirname(path.join(root, name)), { recursive: true });
        await writeFile(path.join(root, name), content);
      }
    },
  };
}

export async function makeFifo(place: string): Promise<void> {
  await promisify(execFile)('mkfifo', [place]);
}
