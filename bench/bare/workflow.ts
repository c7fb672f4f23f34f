import { condition, defineQuery, proxyActivities, setHandler } from '@temporalio/workflow';
import { WIDE, type BareActivities, type BareInput, type SentMessage } from './contract.js';

const { callModel, callWith, runTool, act } = proxyActivities<BareActivities>({
  startToCloseTimeout: 60_000,
});

/**
 * The baseline that perdure is compared with: the minimal decide → act loop on Temporal. It has no
 * transcript, no limits, and no output, and its only fault tolerance is the retry of an activity.
 */
export async function bareLoop(input: BareInput): Promise<string> {
  for (let step = 0; ; step += 1) {
    const { text, calls } = await callModel({ ...input, step });
    if (calls.length === 0) return text;
    await Promise.all(calls.map((call) => runTool(call.arguments)));
  }
}

/**
 * The loop as most people write it first: it keeps the conversation and sends all of it with every
 * model call.
 */
export async function resendLoop({ message }: BareInput): Promise<string> {
  const messages: SentMessage[] = [{ role: 'user', content: message }];
  for (;;) {
    const { text, calls } = await callWith(messages);
    if (calls.length === 0) return text;
    messages.push({
      role: 'assistant',
      content: text,
      tool_calls: calls.map(({ tool, arguments: given }) => ({
        id: `call_${given.step}_${given.part}`,
        type: 'function',
        function: { name: tool, arguments: JSON.stringify(given) },
      })),
    });
    const results = await Promise.all(calls.map((call) => runTool(call.arguments)));
    calls.forEach(({ arguments: given }, at) => {
      const id = `call_${given.step}_${given.part}`;
      messages.push({ role: 'tool', tool_call_id: id, content: results[at] ?? '' });
    });
  }
}

/** Whether an open loop waits for its next message. */
export const isIdle = defineQuery<boolean>('isIdle');

/**
 * The bare loop as an open conversation: it keeps each reply and result, as a later message needs
 * them, and then waits for one.
 */
export async function openLoop(input: BareInput): Promise<void> {
  const messages = [input.message];
  let idle = false;
  setHandler(isIdle, () => idle);
  for (let step = 0; ; step += 1) {
    const { text, calls } = await callModel({ ...input, step });
    messages.push(text);
    if (calls.length === 0) break;
    messages.push(...(await Promise.all(calls.map((call) => runTool(call.arguments)))));
  }
  idle = true;
  // Uses the messages after the wait, so that they are held during it.
  await condition(() => messages.length === 0);
}

/** Three activities in a row, the equivalent of a graph of three functions. */
export async function threeActivities(): Promise<number> {
  let sum = 0;
  for (const index of [1, 2, 3]) sum += await act(index);
  return sum;
}

/** A planner's reply, the actions of the plan as soon as they can start, and a closing reply. */
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
