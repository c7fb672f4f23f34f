import { setImmediate as nextTick } from 'node:timers/promises';
import type { Context } from '@temporalio/activity';
import type { BlobStore } from '../../storage/blob-store.js';
import { hasCatalog, INVOKE } from '../../core/catalog/catalog.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import type { ModelReply } from '../../models/model.js';
import type { AnswerParser } from '../../output/parse-output.js';
import { mayBeSlow } from '../../tools/arguments/slow-schema.js';
import { parserOf } from './answer.js';
import { asDetails, paidReply, type AttemptMemory } from './attempt-memory.js';
import type { CallModelInput } from '../../core/contract.js';
import type { PinnedAgent } from '../definitions.js';
import { pinnedInput, unchanged } from '../tool/pinned-input.js';

/** So many attempts may begin to check a reply; each that does not end has frozen a worker. */
const MOST_CHECKS = 2;
/** What the SDK takes to hand a heartbeat over to its core, which sends it from its own thread. */
const HANDOVER_TICKS = 3;

/** What the model and people read when a check was given up. */
export const CHECK_GIVEN_UP = `the check took too long and was given up after ${MOST_CHECKS} attempts`;

/**
 * Makes sure that a check which blocks this process, whatever happens to the attempt, does not have the
 * reply paid for once more: the reply is recorded in a heartbeat before the author's code sees it.
 * Where the check is provably cheap, nothing is done and nothing is sent.
 *
 * Returns false where earlier attempts have begun the check often enough: it must not be run again.
 */
export async function mayCheck(
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
  if (!hasSlowCheck(reply, pinned, input)) return true;
  const checks = (memory.paid?.checks ?? 0) + 1;
  if (checks > MOST_CHECKS) {
    context.log.warn(`${CHECK_GIVEN_UP}; find what blocks in the agent's output or tools`);
    return false;
  }
  memory.paid =
    memory.paid === null ? await paidReply(reply, { checks, blobs }) : { ...memory.paid, checks };
  if (memory.paid === null) {
    context.log.warn('the reply is too large to be recorded before its check: no blob store');
    return true;
  }
  context.heartbeat(asDetails(memory));
  for (let tick = 0; tick < HANDOVER_TICKS; tick += 1) await nextTick();
  return true;
}

/** Whether code of the author's, or a pattern, is to see this reply. */
function hasSlowCheck(
  { calls, text, finish }: ModelReply,
  pinned: PinnedAgent,
  { compact }: CallModelInput,
): boolean {
  if (compact !== undefined) return false;
  const { tools, decide } = pinned.definition;
  if (calls.length > 0 && decide !== 'schema') {
    const isAny = hasCatalog(pinned.definition) && calls.some(({ name }) => name === INVOKE);
    const asked = new Set(calls.map(({ name }) => name));
    return tools.some((tool) => (isAny || asked.has(tool.name)) && isSlowTool(tool, pinned));
  }
  if (finish !== 'stop' && finish !== 'calls') return false;
  if (hasSlowParser(pinned)) return true;
  // The text itself may be calls.
  const mayCall = decide === 'schema' || /^\s*(?:`|[{[])/.test(text);
  return mayCall && tools.some((tool) => isSlowTool(tool, pinned));
}

/** Whether reading an answer can block: a function of the author's, or a type that is not plain. */
export function hasSlowParser(pinned: PinnedAgent): boolean {
  const parser = parserIn(pinned);
  return parser?.type === 'function' || (parser?.type === 'zod' && mayBeSlow(parser.schema));
}

/** Null also where the pinned schema cannot be read, which the check itself reports. */
function parserIn(pinned: PinnedAgent): AnswerParser | null {
  try {
    return parserOf(pinned);
  } catch {
    return null;
  }
}

/** Whether checking or describing a call of this tool can block. Schemas of MCP servers run elsewhere. */
export function isSlowTool(known: ToolDefinition, pinned: PinnedAgent): boolean {
  if (known.mcp !== undefined) return false;
  const tool = unchanged(known, pinned.tools.get(known.name));
  if (tool?.kind !== undefined) return false;
  if (tool?.describe !== undefined) return true;
  return mayBeSlow(tool?.input ?? pinnedInput(known));
}
