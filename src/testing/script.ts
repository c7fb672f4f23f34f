import { formatCount } from '../core/text/count.js';
import { getFirstUserText, type StubRequest } from './requests.js';
import { replyError, wireOf, type Reply, type Step } from './replies.js';

/** Answers from the request alone; `undefined` leaves it to the next function. */
export type Answer = (request: StubRequest) => Reply | undefined;

/**
 * The sources of answers, in this order: the queue of a conversation, the common queue, functions.
 */
export interface Script {
  add(steps: readonly Reply[]): void;
  addFor(marker: string, steps: readonly Reply[]): void;
  answer(answer: Answer): void;
  fallback(answer: Answer): void;
  next(request: StubRequest): Step;
  /** Records an error of the test's own functions or steps, which `assertConsumed` throws. */
  fail(error: unknown): void;
  assertConsumed(): void;
}

export function createScript(): Script {
  const common: Reply[] = [];
  const byMarker = new Map<string, Reply[]>();
  const unexpected: string[] = [];
  let answers: readonly Answer[] = [];
  let fallback: Answer | undefined;

  const takeStep = (request: StubRequest): Reply | undefined => {
    const text = getFirstUserText(request);
    const marked = [...byMarker.keys()].find((marker) => text.includes(marker));
    // A conversation with its own queue takes nothing from the common one.
    return marked === undefined ? common.shift() : byMarker.get(marked)?.shift();
  };

  const callAnswers = (request: StubRequest): Reply | undefined => {
    for (const answer of answers) {
      const step = answer(request);
      if (step !== undefined) return step;
    }
    return fallback?.(request);
  };

  return {
    add: (steps) => void common.push(...steps),
    addFor(marker, steps) {
      byMarker.set(marker, [...(byMarker.get(marker) ?? []), ...steps]);
    },
    answer(answer) {
      answers = [...answers, answer];
    },
    fallback(answer) {
      fallback = answer;
    },
    next(request) {
      const step = takeStep(request) ?? callAnswers(request);
      if (step !== undefined) return wireOf(step);
      const message = `The stub has no step for request ${request.number} ("${getFirstUserText(request).slice(0, 60)}", ${formatCount(request.messages.length, 'message')}).`;
      unexpected.push(message);
      // Status 400 is not retried, so the test fails at its cause.
      return replyError(400, { message, type: 'stub_exhausted', code: 'stub_exhausted' }).wire;
    },
    fail(error) {
      unexpected.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
    },
    assertConsumed() {
      const left = [
        ...(common.length > 0 ? [`${formatCount(common.length, 'step')} of the common queue`] : []),
        ...[...byMarker]
          .filter(([, steps]) => steps.length > 0)
          .map(([marker, steps]) => `${formatCount(steps.length, 'step')} for "${marker}"`),
      ];
      if (left.length > 0) unexpected.push(`Unused: ${left.join(', ')}.`);
      if (unexpected.length > 0) throw new Error(unexpected.join('\n'));
    },
  };
}
