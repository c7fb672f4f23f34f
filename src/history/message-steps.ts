import type { Message } from '../core/transcript/messages.js';
import type { Projection } from './projection.js';
import type { DurableStep } from './durable-events.js';

export interface MessageProgress {
  /** Number of the next message. */
  readonly next: number;
  readonly turn: number;
  /** Turns that have ended in this segment. */
  readonly ended: number;
}

/** What was said since, with the ends and beginnings of turns in between, up to turn `reached`. */
export function messageSteps(
  { said, turns, paid }: Pick<Projection, 'said' | 'turns' | 'paid'>,
  before: MessageProgress,
  reached: number,
): { readonly steps: readonly DurableStep[]; readonly told: MessageProgress } {
  const upTo = Math.max(before.turn, reached);
  const fresh = said.filter(({ n, turn }) => n >= before.next && turn <= upTo);
  const ends = turns.slice(before.ended).filter(({ turn }) => turn <= upTo);
  const touched = [...new Set([...fresh, ...ends].map(({ turn }) => turn))];
  const steps = touched
    .toSorted((one, other) => one - other)
    .flatMap((turn): readonly DurableStep[] => [
      ...(turn > before.turn ? [{ type: 'turn-begun', turn } as const] : []),
      ...fresh
        .filter((message) => message.turn === turn)
        .flatMap((message) => step(message, { said, paid })),
      ...ends
        .filter((end) => end.turn === turn)
        .map(({ outcome }) => ({ type: 'turn-ended', turn, outcome }) as const),
    ]);
  return {
    steps,
    told: {
      next: (fresh.at(-1)?.n ?? before.next - 1) + 1,
      turn: Math.max(before.turn, ...touched),
      ended: before.ended + ends.length,
    },
  };
}

function step(
  message: Message,
  { said, paid }: Pick<Projection, 'said' | 'paid'>,
): readonly DurableStep[] {
  const cost = paid.get(message.n);
  const usage = cost && { usage: cost };
  switch (message.role) {
    case 'user':
      // What the model is told of a refused answer is told with the answer.
      if (message.side) return [];
      return message.compacts === undefined
        ? [{ type: 'message-said', message }]
        : [{ type: 'transcript-compacted', message, ...usage }];
    case 'assistant':
      return message.side
        ? [{ type: 'answer-refused', message, problem: problemOf(message.n, said), ...usage }]
        : [{ type: 'model-replied', message, ...usage }];
    case 'tool':
      return [{ type: 'call-finished', tool: findTool(message.callId, said), message }];
  }
}

/** What the model was told of the answer with this number: it is said right behind it. */
function problemOf(answer: number, said: readonly Message[]): string {
  return said.find(({ n }) => n === answer + 1)?.text ?? '';
}

function findTool(callId: string, said: readonly Message[]): string {
  for (const message of said.toReversed()) {
    const call = message.role === 'assistant' && message.calls?.find(({ id }) => id === callId);
    if (call) return call.name;
  }
  return '';
}
