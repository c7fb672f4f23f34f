import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { Json } from '../../src/core/text/json.js';
import { toolContext } from '../../src/testing.js';
import { normalizeResult } from '../../src/tools/result/normalize.js';
import type { Tool, ToolContext } from '../../src/tools/tool.js';

/** Makes a folder that is removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), 'perdure-tools-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Calls a tool as the engine does: returns the result as text for the model. */
export async function callTool(
  tool: Tool,
  input: Json,
  context: Partial<ToolContext> = {},
): Promise<string> {
  return normalizeResult(await tool.execute(input, { ...toolContext(), ...context }));
}

/** Returns the error with which a call fails; throws if it succeeds. */
export async function callFailure(
  tool: Tool,
  input: Json,
  context: Partial<ToolContext> = {},
): Promise<Error> {
  try {
    const text = await callTool(tool, input, context);
    throw new Error(`the call did not fail but answered: ${text.slice(0, 500)}`);
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}

/** Returns the tool of that name; throws if there is none. */
export function toolNamed(tools: readonly Tool[], name: string): Tool {
  const tool = tools.find((candidate) => candidate.name === name);
  if (!tool) throw new Error(`no tool ${name}`);
  return tool;
}
