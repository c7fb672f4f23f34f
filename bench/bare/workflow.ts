import { proxyActivities } from '@temporalio/workflow';
import type { BareActivities, BareInput } from './contract.js';

const { callModel, runTool } = proxyActivities<BareActivities>({ startToCloseTimeout: 60_000 });

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
