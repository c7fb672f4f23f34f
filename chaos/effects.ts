import { isObject, parseJson } from '../src/core/text/json.js';
import type { Message } from '../src/core/transcript/messages.js';
import type { Ledger } from './ledger.js';
import type { ChaosRun } from './traffic.js';

/** Results of a payment or a posting whose outcome `verify` or a person determined. */
const FOUND = ['The call took effect.', 'found on the statement'];
/** Errors that state that a call did not take effect. */
const DENIALS = ['tool_error', 'not_executed', 'denied'];
/** How the engine begins results that come from a person, and those of changed calls. */
const GIVEN = '[a person gave this result; the tool was not executed]';
const CHANGED = '[a person changed the arguments before this was executed:';
/** Errors that do not tell whether a call took effect. */
const DOUBTS = ['cancelled', 'timeout'];

/** I2: a `once` call took effect at most once, and a `keyed` call under one key only. */
export function effectFaults({ paid, put }: Ledger): readonly string[] {
  return [
    ...[...paid].flatMap(([at, keys]) =>
      keys.length > 1 ? [`${runOf(at)}: I2: ${at} was paid ${keys.length} times`] : [],
    ),
    ...[...put].flatMap(([at, keys]) =>
      keys.size > 1 ? [`${runOf(at)}: I2: ${at} was put under ${keys.size} keys`] : [],
    ),
  ];
}

/** I5 and I13: what an agent that asks has executed is exactly what a person has allowed. */
export function consentFaults(
  { id, agent, number, decided }: ChaosRun,
  { paid, put }: Pick<Ledger, 'paid' | 'put'>,
): readonly string[] {
  if (agent !== 'careful') return [];
  const allowed = new Set(decided.values());
  return [...paid.keys(), ...put.keys()]
    .filter((at) => at.startsWith(`${number}/`) && !allowed.has(at))
    .map((at) => `I5: ${at} was executed by ${id}, although no person has allowed it`);
}

/** I2: what the model read about a call agrees with the ledger. */
export function reportFaults(
  messages: readonly Message[],
  { paid, put }: Pick<Ledger, 'paid' | 'put'>,
): readonly string[] {
  const calls = messages.flatMap((one) => (one.role === 'assistant' ? (one.calls ?? []) : []));
  const results = new Map(
    messages.flatMap((one) => (one.role === 'tool' ? [[one.callId, one.text] as const] : [])),
  );
  return calls.flatMap((call) => {
    if (call.name !== 'pay' && call.name !== 'put') return [];
    const read = results.get(call.id) ?? 'nothing';
    const isChanged = read.startsWith(CHANGED);
    const text = isChanged ? read.slice(read.indexOf('\n') + 1) : read;
    const at = isChanged
      ? placeOf(read.slice(CHANGED.length, read.indexOf(']\n')))
      : placeOf(call.arguments);
    const times = call.name === 'pay' ? paid.get(at)?.length : put.get(at)?.size;
    if (text.startsWith(GIVEN)) {
      return times === undefined ? [] : [`I13: ${at} happened, although a person gave its result`];
    }
    const isDone = text === `${call.name} ${at} done` || FOUND.includes(text);
    const error = errorOf(text);
    const isTrue =
      (isDone && times === 1) ||
      // An attempt of a `keyed` call may have taken effect before the one that failed.
      (DENIALS.includes(error) && (times === undefined || call.name === 'put')) ||
      DOUBTS.includes(error);
    if (isTrue) return [];
    return [
      `I2: the model read "${text}" about ${call.name} ${at}, which happened ${times ?? 0} times`,
    ];
  });
}

function placeOf(text: string): string {
  const given = parseJson(text);
  return isObject(given) ? `${String(given['at'])}/${String(given['part'])}` : text;
}

function errorOf(text: string): string {
  const result = text.startsWith('{') ? parseJson(text) : null;
  const error = isObject(result) ? result['error'] : null;
  return isObject(error) ? String(error['type']) : '';
}

function runOf(at: string): string {
  return `chaos-${at.split('/')[0]}`;
}
