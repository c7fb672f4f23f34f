import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { Json } from '../../src/core/json.js';
import { checkArguments } from '../../src/tools/arguments/check-arguments.js';
import { normalizeResult } from '../../src/tools/result/normalize.js';
import type { Tool, ToolContext } from '../../src/tools/tool.js';

/** A folder that is gone when the test is over. */
export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), 'perdure-tools-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export function toolContext(parts: Partial<ToolContext> = {}): ToolContext {
  return {
    idempotencyKey: 'key',
    signal: new AbortController().signal,
    heartbeat: () => undefined,
    log: () => undefined,
    run: { id: 'run', runId: 'segment', turn: 1, step: 1 },
    call: { id: 'call_1_1_0', attempt: 1 },
    context: null,
    artifacts: { names: [], get: () => Promise.reject(new Error('there are none')) },
    ...parts,
  };
}

/** A call as the engine makes it: arguments checked, result as text for the model. */
export async function callTool(
  tool: Tool,
  input: Json,
  context: Partial<ToolContext> = {},
): Promise<string> {
  const checked = await checkArguments(tool, input);
  if (!checked.ok) throw new Error(checked.problem.message);
  return normalizeResult(await tool.execute(checked.value, toolContext(context)));
}

/** The message with which a call fails; throws when it does not. */
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

/** The tool of that name; throws when there is none. */
export function toolNamed(tools: readonly Tool[], name: string): Tool {
  const tool = tools.find((candidate) => candidate.name === name);
  if (!tool) throw new Error(`no tool ${name}`);
  return tool;
}
