import { SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common';
import {
  condition,
  makeContinueAsNewFunc,
  patched,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import { agent as current, runAgent, type Outcome, type RunInput } from '../../src/workflow.js';

const AGENT = defineSearchAttributeKey('AgentName', SearchAttributeType.KEYWORD);
const STATUS = defineSearchAttributeKey('AgentStatus', SearchAttributeType.KEYWORD);

/** An agent; if its first message says so, as a newer version of perdure would run it. */
export async function agent(input: RunInput, carried?: unknown): Promise<Outcome> {
  if (input.message?.startsWith('to a newer version')) patched('semantics-99');
  return await current(input, carried);
}

/** Calls an agent twice with the same input, as a project's own workflow would. `stay`: does not end. */
export async function caller(
  input: RunInput,
  { taskQueue, stay = false }: { readonly taskQueue?: string; readonly stay?: boolean } = {},
): Promise<readonly Outcome[]> {
  const options = taskQueue === undefined ? {} : { taskQueue };
  const outcomes = [await runAgent(input, options), await runAgent(input, options)];
  if (stay) await condition(() => false);
  return outcomes;
}

/**
 * Continues as new into an agent, with a state that no segment has passed on. What lists show of a
 * segment, its attributes and its memo, is written as a segment writes it.
 */
export async function forger(input: RunInput, carried: { schema: unknown }): Promise<void> {
  upsertSearchAttributes([
    { key: AGENT, value: input.agent },
    { key: STATUS, value: 'working' },
  ]);
  const { schema } = carried;
  const go = makeContinueAsNewFunc<typeof agent>({ workflowType: 'agent', memo: { schema } });
  await go(input, carried);
}

/** Blocks for some milliseconds of real time, as workflow code of a frozen worker does. */
export async function standStill(ms: number): Promise<string> {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  return 'continued';
}
