import { firstUserText, type StubRequest } from './requests.js';
import { reply, type Step } from './steps.js';

/** Answers by the request alone; `undefined` leaves it to others. */
export type Answer = (request: StubRequest) => Step | undefined;

/** What the stub answers with, in this order: a conversation's queue, the common queue, functions. */
export interface Script {
  add(steps: readonly Step[]): void;
  addFor(marker: string, steps: readonly Step[]): void;
  answer(answer: Answer): void;
  fallback(answer: Answer): void;
  next(request: StubRequest): Step;
  /** The test's own functions or steps are at fault: `assertConsumed` will say so. */
  blame(error: unknown): void;
  assertConsumed(): void;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function createScript(): Script {
  const common: Step[] = [];
  const byMarker = new Map<string, Step[]>();
  const unexpected: string[] = [];
  let answers: readonly Answer[] = [];
  let fallback: Answer | undefined;

  const scripted = (request: StubRequest): Step | undefined => {
    const text = firstUserText(request);
    const marked = [...byMarker.keys()].find((marker) => text.includes(marker));
    // A conversation with a queue of its own takes nothing from the common one.
    return marked === undefined ? common.shift() : byMarker.get(marked)?.shift();
  };

  const answered = (request: StubRequest): Step | undefined => {
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
      const step = scripted(request) ?? answered(request);
      if (step !== undefined) return step;
      const message = `The stub has no step for request ${request.number} ("${firstUserText(request).slice(0, 60)}", ${plural(request.messages.length, 'message')}).`;
      unexpected.push(message);
      // 400: nobody tries again, so the test fails at its cause.
      return reply.error(400, { message, type: 'stub_exhausted', code: 'stub_exhausted' });
    },
    blame(error) {
      unexpected.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
    },
    assertConsumed() {
      const left = [
        ...(common.length > 0 ? [`${plural(common.length, 'step')} of the common queue`] : []),
        ...[...byMarker]
          .filter(([, steps]) => steps.length > 0)
          .map(([marker, steps]) => `${plural(steps.length, 'step')} for "${marker}"`),
      ];
      if (left.length > 0) unexpected.push(`Not asked for: ${left.join(', ')}.`);
      if (unexpected.length > 0) throw new Error(unexpected.join('\n'));
    },
  };
}
