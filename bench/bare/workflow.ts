import { proxyActivities } from '@temporalio/workflow';
import { WIDE, type BareActivities, type BareInput } from './contract.js';

const { callModel, runTool, act } = proxyActivities<BareActivities>({
  startToCloseTimeout: 60_000,
});

/**
 * What perdure is held against: the least that a decide → act loop on Temporal can be. It keeps no
 * transcript, has no limits, shows nothing and survives nothing but a retry.
 */
export async function bareLoop(input: BareInput): Promise<string> {
  for (let step = 0; ; step += 1) {
    const { text, calls } = await callModel({ ...input, step });
    if (calls.length === 0) return text;
    await Promise.all(calls.map((call) => runTool(call.arguments)));
  }
}

/** Three activities in a row, as a graph of three functions has them. */
export async function threeActivities(): Promise<number> {
  let sum = 0;
  for (const index of [1, 2, 3]) sum += await act(index);
  return sum;
}

/** A planner's reply, the actions of the plan as soon as they can begin, and a closing reply. */
export async function widePlan(): Promise<number> {
  await act(-1);
  const ended = new Map<number, Promise<number>>();
  for (let index = 0; index < WIDE.actions; index += 1) {
    const before = ended.get(index - WIDE.width);
    ended.set(index, before === undefined ? act(index) : before.then(() => act(index)));
  }
  await Promise.all(ended.values());
  return await act(-2);
}
