import type { Context } from '@temporalio/activity';
import type { BlobStore } from '../../storage/blob-store.js';
import { hasCatalog, INVOKE } from '../../core/transcript/catalog.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import type { ModelReply } from '../../models/model.js';
import type { AnswerParser } from '../../output/parse-output.js';
import { mayBeSlow } from '../../tools/arguments/check-arguments.js';
import { createAnswerParser } from './answer-formats.js';
import { toPaidReply, type AttemptMemory, handOver } from './attempt-memory.js';
import type { CallModelInput } from '../../core/run/contract.js';
import type { PinnedAgent } from '../activity-context.js';
import { ifUnchanged, toPinnedInput } from '../tool/mcp-tool.js';

/**
 * Maximum attempts that may begin to check a reply: each check that did not end has frozen a
 * worker.
 */
const MAX_CHECKS = 2;

/** The text for the model and people about an abandoned check. */
export const CHECK_GIVEN_UP = `the check took too long and was abandoned after ${MAX_CHECKS} attempts`;

/**
 * Records a reply in a heartbeat before the author's code checks it, so a check that blocks this
 * process does not cause a second payment. For a check that is provably cheap, it does nothing.
 *
 * Returns false if earlier attempts have begun the check too often; it must not be run again.
 */
export async function beginCheck(
  reply: ModelReply,
  memory: AttemptMemory,
  on: {
    readonly pinned: PinnedAgent;
    readonly input: CallModelInput;
    readonly context: Context;
    readonly blobs: BlobStore;
  },
): Promise<boolean> {
  const { pinned, input, context, blobs } = on;
  if (!needsSlowCheck(reply, pinned, input)) return true;
  const checks = (memory.paid?.checks ?? 0) + 1;
  if (checks > MAX_CHECKS) {
    context.log.warn(`${CHECK_GIVEN_UP}; find what blocks in the agent's output or tools`);
    return false;
  }
  memory.paid =
    memory.paid === null ? await toPaidReply(reply, { checks, blobs }) : { ...memory.paid, checks };
  if (memory.paid === null) {
    context.log.warn(
      'the blob store is down and the reply is too large for a heartbeat: its check is not protected',
    );
    return true;
  }
  await handOver(context, memory);
  return true;
}

/** Returns whether the author's code, or a pattern, will check this reply. */
function needsSlowCheck(
  { calls, text, finish }: ModelReply,
  pinned: PinnedAgent,
  { compact }: CallModelInput,
): boolean {
  if (compact !== undefined) return false;
  const { tools, decide } = pinned.definition;
  if (calls.length > 0 && decide !== 'schema') {
    const isAny = hasCatalog(pinned.definition) && calls.some(({ name }) => name === INVOKE);
    const names = new Set(calls.map(({ name }) => name));
    return tools.some((tool) => (isAny || names.has(tool.name)) && mayBlock(tool, pinned));
  }
  if (finish !== 'stop' && finish !== 'calls') return false;
  if (isSlowAnswer(pinned)) return true;
  // The text may consist of calls.
  const mayCall = decide === 'schema' || /^\s*(?:`|[{[])/.test(text);
  return mayCall && tools.some((tool) => mayBlock(tool, pinned));
}

/**
 * Returns whether reading an answer can block: by a function of the author, or by a type that is
 * not plain.
 */
export function isSlowAnswer(pinned: PinnedAgent): boolean {
  const parser = findParser(pinned);
  return parser?.type === 'function' || (parser?.type === 'zod' && mayBeSlow(parser.schema));
}

/**
 * Returns the parser of answers. Also null if the pinned schema cannot be read, which the check
 * reports.
 */
function findParser(pinned: PinnedAgent): AnswerParser | null {
  try {
    return createAnswerParser(pinned);
  } catch {
    return null;
  }
}

/** Returns whether the author's code may block this process for a call of this tool. */
function mayBlock(known: ToolDefinition, pinned: PinnedAgent): boolean {
  const { approval } = pinned.tools.get(known.name) ?? {};
  return typeof approval === 'function' || isSlowTool(known, pinned);
}

/**
 * Returns whether checking or describing a call of this tool can block this process. The schema of
 * an MCP server cannot: it is checked in another thread.
 */
export function isSlowTool(known: ToolDefinition, pinned: PinnedAgent): boolean {
  if (known.mcp !== undefined) return false;
  const tool = ifUnchanged(known, pinned.tools.get(known.name));
  if (tool?.kind !== undefined && tool.kind !== 'client') return false;
  if (tool?.describe !== undefined) return true;
  return mayBeSlow(tool?.input ?? toPinnedInput(known));
}
