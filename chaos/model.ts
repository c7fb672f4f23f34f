import { createHash } from 'node:crypto';
import { isObject } from '../src/core/text/json.js';
import type { StubRequest, StubMessage } from '../src/testing/wire-input.js';
import {
  replyCalls,
  replyError,
  replyRaw,
  replyReset,
  replyText,
  type Reply,
  withDelivery,
} from '../src/testing/replies.js';
import type { Stub } from '../src/testing/stub-server.js';
import { integer, seeded, type Random } from './random.js';

/** The content of a message of the chaos run: `run 7 message 3 steps 4 as chaos`. */
const TASK = /run (\d+) message (\d+) steps (\d+) as (\w+)/;
/** The agents whose prompts only grow: a graph's nodes and a function send prompts of their own. */
const GROWING = ['chaos', 'capped', 'careful'];
const FAULT_SHARE = 0.1;

/** The model of the chaos run, and what it saw. */
export interface Model {
  /** Prompts that a provider would reject, and prompts that do not continue the previous one. */
  readonly faults: readonly string[];
  /** When prompts arrived, Unix time in ms, by the digest that their reply carries. */
  readonly arrivals: ReadonlyMap<string, readonly number[]>;
  /** How often a conversation was summarized. */
  readonly summaries: number;
  /** Stops adding faults. */
  calm(): void;
}

/**
 * Lets the stub answer from the prompt alone, so that it needs no memory when workers come and go.
 */
export function answerAll(stub: Stub, seed: number, canary: string): Model {
  const faults: string[] = [];
  const arrivals = new Map<string, number[]>();
  const longest = new Map<string, readonly string[]>();
  const chance = seeded(seed);
  let isCalm = false;
  let summaries = 0;
  stub.answer((request) => {
    const digest = digestOf(request.text);
    arrivals.set(digest, [...(arrivals.get(digest) ?? []), request.receivedAt]);
    const invalid = invalidPrompt(request.messages);
    if (invalid !== null) faults.push(`I4: ${invalid}`);
    const isSummary = isCompaction(request.messages);
    const broken = isSummary ? null : brokenPrefix(request.messages, longest);
    if (broken !== null) faults.push(`prefix: ${broken}`);
    if (isSummary) summaries += 1;
    const answer = isSummary ? summarize(request, digest) : answerTo(request, digest);
    if (isCalm || chance() >= FAULT_SHARE) return answer;
    return faulty(chance, answer, canary);
  });
  return {
    faults,
    arrivals,
    get summaries() {
      return summaries;
    },
    calm: () => void (isCalm = true),
  };
}

/** Counts the prompt as a provider would, so that agents with a small window summarize it. */
function deliveryOf(request: StubRequest, digest: string) {
  const tokens = Math.ceil(request.text.length / 4);
  return {
    delay: 20 + (Number.parseInt(digest.slice(0, 2), 16) % 180),
    usage: { prompt_tokens: tokens, completion_tokens: 20, total_tokens: tokens + 20 },
  };
}

function isCompaction([first]: readonly StubMessage[]): boolean {
  return text(first?.content).startsWith('You summarize a conversation');
}

/** The newest step of a record or of a summary: `"at":"7/1/2"`, or `done 7/1/2`. */
const STEP = /(?:"at":"|done )(\d+\/\d+)\/(\d+)/g;

/** Summarizes by naming the newest step that was done, so that none is made again. */
function summarize(request: StubRequest, digest: string): Reply {
  const [, at = '0/0', step = '0'] =
    [...text(request.messages.at(-1)?.content).matchAll(STEP)].at(-1) ?? [];
  return replyText(`done ${at}/${step} [${digest}]`, deliveryOf(request, digest));
}

/** Returns how many steps of a task the summary behind it names. */
function summarizedSteps(messages: readonly StubMessage[], task: string): number {
  const steps = messages.flatMap(({ role, content }) => {
    const found = role === 'user' ? [...text(content).matchAll(STEP)].at(-1) : undefined;
    return found?.[1] === task ? [Number(found[2]) + 1] : [];
  });
  return steps.at(-1) ?? 0;
}

function answerTo(request: StubRequest, digest: string): Reply {
  const { messages } = request;
  const last = messages.findLastIndex(({ role, content }) => role === 'user' && isTask(content));
  const [, run, message, steps, agent] = TASK.exec(text(messages[last]?.content)) ?? [];
  const newer = messages.slice(last);
  const done =
    summarizedSteps(newer, `${run}/${message}`) +
    newer.filter(({ role }) => role === 'assistant').length;
  const delivery = deliveryOf(request, digest);
  if (run === undefined || done >= Number(steps)) {
    return replyText(`answer to run ${run} message ${message} [${digest}]`, delivery);
  }
  const at = `${run}/${message}/${done}`;
  const random = seeded(Number.parseInt(digestOf(at).slice(0, 8), 16));
  if (agent === 'planner') {
    if (done > 0) return replyText(`answer to run ${run} message ${message} [${digest}]`, delivery);
    return replyText(planOf(at, { random, digest }), delivery);
  }
  const calls = Array.from({ length: integer(random, 1, 4) }, (_, part) => ({
    name: toolFor(random),
    // A function's decision has no text, so its calls carry the digest.
    arguments: { at, part, ...(agent === 'decider' && { note: `[${digest}]` }) },
  }));
  return replyCalls(calls, { ...delivery, text: `step [${digest}]` });
}

/** A plan of one to five actions, some of which depend on the one before. */
function planOf(at: string, { random, digest }: { random: Random; digest: string }): string {
  const actions = Array.from({ length: integer(random, 1, 6) }, (_, part) => ({
    id: `a${part + 1}`,
    tool: toolFor(random),
    arguments: { at, part, note: `[${digest}]` },
    ...(part > 0 && random() < 0.4 && { after: [`a${part}`] }),
  }));
  return JSON.stringify({ actions });
}

function toolFor(random: Random): string {
  const draw = random();
  if (draw < 0.4) return 'put';
  if (draw < 0.7) return 'look';
  return draw < 0.95 ? 'pay' : 'big';
}

function faulty(random: Random, answer: Reply, canary: string): Reply {
  const kinds: readonly (() => Reply)[] = [
    () => replyError(500, { message: `no luck with ${canary}` }),
    () => replyError(429, { message: 'slow down' }, { headers: { 'retry-after': '1' } }),
    () => replyReset(),
    () => replyRaw('<html>bad gateway</html>'),
    () => withDelivery(answer, { cut: { afterBytes: 60, how: 'reset' } }),
    () => withDelivery(answer, { cut: { afterBytes: 60, how: 'end' } }),
  ];
  return (kinds[integer(random, 0, kinds.length)] ?? (() => answer))();
}

/**
 * Each call has exactly one result, in order, directly after the message that contains the call.
 */
function invalidPrompt(messages: readonly StubMessage[]): string | null {
  let open: unknown[] = [];
  for (const { role, tool_calls: calls, tool_call_id: id } of messages) {
    if (role === 'tool') {
      if (open.shift() !== id) return `result of ${String(id)} is out of order`;
      continue;
    }
    if (open.length > 0) return `call ${String(open[0])} has no result`;
    if (Array.isArray(calls)) open = calls.map((call) => (isObject(call) ? call['id'] : null));
  }
  return open.length > 0 ? `call ${String(open[0])} has no result at the end` : null;
}

/** Every prompt of a run begins with all shorter ones: what was sent never changes. */
function brokenPrefix(
  messages: readonly StubMessage[],
  longest: Map<string, readonly string[]>,
): string | null {
  // A summary may precede the task.
  const task = messages.find(({ role, content }) => role === 'user' && isTask(content));
  const first = text(task?.content);
  const [, run, , , agent = ''] = TASK.exec(first) ?? [];
  if (run === undefined) return 'a prompt without a task';
  if (!GROWING.includes(agent)) return null;
  const digests = messages.map((message) => digestOf(JSON.stringify(message)));
  const known = longest.get(run) ?? [];
  if (digests.length > known.length) longest.set(run, digests);
  const differs = known.findIndex((one, at) => at < digests.length && digests[at] !== one);
  return differs < 0 ? null : `run ${run}: message ${differs} was changed`;
}

export function digestOf(given: string): string {
  return createHash('sha256').update(given).digest('hex').slice(0, 16);
}

function isTask(content: unknown): boolean {
  return TASK.test(text(content));
}

function text(content: unknown): string {
  return typeof content === 'string' ? content : (JSON.stringify(content) ?? '');
}
