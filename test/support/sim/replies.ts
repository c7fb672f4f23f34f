import type { RecordedReply } from '../../../src/core/transcript/outcome.js';
import type { Deciders, Verdict } from '../../../src/core/definition/rules.js';
import type { RequestedCall } from '../../../src/core/transcript/messages.js';
import { callReply, textReply } from '../scripts.js';
import type { Dice } from './dice.js';

const NAMES = [
  'look',
  'put',
  'pay',
  'refund',
  'nap',
  'expert',
  'poll',
  'screen',
  'done',
  'nothing',
  'post',
  'question',
  'browser',
] as const;

function argumentsFor(name: string, dice: Dice): unknown {
  if (name === 'nap') return dice.pick([{ seconds: 5 }, { seconds: 90 }, { seconds: -1 }]);
  if (name === 'expert') return { message: 'help', n: dice.roll(2) };
  if (name === 'question') return { question: 'how?', n: dice.roll(3) };
  return { x: dice.roll(3) };
}

function chooseCall(dice: Dice): RequestedCall | undefined {
  const name = dice.pick(NAMES);
  const [call] = callReply([name, argumentsFor(name, dice)]).calls ?? [];
  const problem = { type: 'invalid_arguments', message: 'x: expected a number' } as const;
  const checks = [{ id: 'check', code: 'risky' }];
  return (
    call && {
      ...call,
      ...(dice.chance(12) && { problem }),
      ...(dice.chance(8) && { safety: checks }),
      ...chooseVerdict(dice),
    }
  );
}

const DECIDERS: readonly [Deciders, ...Deciders[]] = [
  'requester',
  'not_requester',
  ['ann'],
  ['ann', 'bob'],
];

/** Returns the verdict of the rules on a call: nothing at first. */
export function chooseVerdict(dice: Dice): { readonly verdict?: Verdict } {
  if (dice.chance(12)) return { verdict: { then: 'deny', why: 'never' } };
  if (!dice.chance(4)) return {};
  const deciders = dice.chance(3) && { deciders: [dice.pick(DECIDERS)] };
  const expires = dice.chance(2) && { expires: dice.pick([20_000, 90_000]) };
  return { verdict: { then: 'ask', why: 'a rule', ...deciders, ...expires } };
}

/** Returns usage that varies, with cached and reasoning tokens, and sometimes estimated. */
function chooseUsage(dice: Dice): RecordedReply['usage'] {
  const inputTokens = dice.pick([10, 100, 400]);
  return {
    inputTokens,
    outputTokens: dice.pick([5, 50]),
    cachedTokens: dice.pick([0, 8, inputTokens]),
    ...(dice.chance(4) && { reasoningTokens: 3 }),
    ...(dice.chance(5) && { estimated: true }),
  };
}

/** Returns the reply of a deciding call: an answer at first, and anything else by chance. */
export function chooseReply(dice: Dice, parses: boolean): RecordedReply {
  const usage = chooseUsage(dice);
  const kind = dice.roll(8);
  const report = { type: 'http_502', attempt: 1, waitMs: 9, at: 1, message: 'bad' };
  const extra = {
    usage,
    ...(dice.chance(6) && { reports: [report] }),
    ...(dice.chance(8) && { dropped: ['temperature'] }),
  };
  if (kind === 0) {
    const isValid = !dice.chance(2);
    const parsed = isValid
      ? ({ ok: true, output: { a: 1 } } as const)
      : ({ ok: false, problem: 'not valid', output: { raw: 1 } } as const);
    return { ...textReply('an answer'), ...(parses && { parsed }), ...extra };
  }
  if (kind === 1)
    return { ...textReply('half', dice.pick(['length', 'refused', 'filtered'])), ...extra };
  const count = dice.pick([1, 2, 3, 7]);
  const calls = Array.from({ length: count }, () => chooseCall(dice)).filter(
    (call) => call !== undefined,
  );
  const finish = dice.chance(15) ? 'length' : 'calls';
  return { text: dice.pick(['', 'I look']), calls, finish, ...extra };
}

/** Returns the reply of a call that closes the turn. */
export function chooseClosing(dice: Dice): RecordedReply {
  const usage = chooseUsage(dice);
  const reply = dice.pick([
    textReply('in short'),
    textReply(' '),
    textReply('no', 'filtered'),
    callReply(['pay']),
  ]);
  return { ...reply, usage };
}

/** Returns the reply of a call that summarizes. */
export function chooseSummary(dice: Dice): RecordedReply {
  const usage = chooseUsage(dice);
  return { ...dice.pick([textReply('so far'), textReply(''), textReply('so', 'length')]), usage };
}
