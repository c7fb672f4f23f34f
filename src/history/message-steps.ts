import type { Message } from '../core/transcript/messages.js';
import type { DurableStep } from './durable-events.js';
import type { Projection } from './projection.js';

/** The messages and turns of a segment that have been emitted. */
export interface MessageProgress {
  /** Number of the next message. */
  readonly next: number;
  readonly turn: number;
  /** Number of turns that have ended in this segment. */
  readonly ended: number;
}

/** Returns new messages as steps, with the starts and ends of turns in between. */
export function messageSteps(
  { messages, turns, usageByMessage }: Pick<Projection, 'messages' | 'turns' | 'usageByMessage'>,
  before: MessageProgress,
): { readonly steps: readonly DurableStep[]; readonly progress: MessageProgress } {
  const fresh = messages.filter(({ n }) => n >= before.next);
  const ends = turns.slice(before.ended);
  const touched = [...new Set([...fresh, ...ends].map(({ turn }) => turn))];
  const steps = touched
    .toSorted((one, other) => one - other)
    .flatMap((turn): readonly DurableStep[] => [
      ...(turn > before.turn ? [{ type: 'turn-begun', turn } as const] : []),
      ...fresh
        .filter((message) => message.turn === turn)
        .flatMap((message) => toSteps(message, { messages, usageByMessage })),
      ...ends
        .filter((end) => end.turn === turn)
        .map(({ outcome }) => ({ type: 'turn-ended', turn, outcome }) as const),
    ]);
  return {
    steps,
    progress: {
      next: (fresh.at(-1)?.n ?? before.next - 1) + 1,
      turn: Math.max(before.turn, ...touched),
      ended: before.ended + ends.length,
    },
  };
}

function toSteps(
  message: Message,
  { messages, usageByMessage }: Pick<Projection, 'messages' | 'usageByMessage'>,
): readonly DurableStep[] {
  const cost = usageByMessage.get(message.n);
  const usage = cost && { usage: cost };
  switch (message.role) {
    case 'user':
      // The message that explains a refused answer is part of the step of that answer.
      if (message.side) return [];
      return message.compacts === undefined
        ? [{ type: 'message-added', message }]
        : [{ type: 'transcript-compacted', message, ...usage }];
    case 'assistant':
      if (message.supplied || message.origin) return [{ type: 'message-added', message }];
      return message.side
        ? [{ type: 'answer-refused', message, problem: findProblem(message.n, messages), ...usage }]
        : [{ type: 'model-replied', message, ...usage }];
    case 'tool':
      return [{ type: 'call-finished', tool: findTool(message.callId, messages), message }];
  }
}

/** Returns the message to the model about a refused answer, which directly follows the answer. */
function findProblem(answer: number, messages: readonly Message[]): string {
  return messages.find(({ n }) => n === answer + 1)?.text ?? '';
}

function findTool(callId: string, messages: readonly Message[]): string {
  for (const message of messages.toReversed()) {
    const call = message.role === 'assistant' && message.calls?.find(({ id }) => id === callId);
    if (call) return call.name;
  }
  return '';
}
