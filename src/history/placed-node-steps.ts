import type { Client } from '@temporalio/client';
import type { Message } from '../core/transcript/messages.js';
import type { DurableStep } from './durable-steps.js';
import { createStepEmitter } from './emit-steps.js';
import type { RunReading } from './read-run.js';
import { readBegun } from './reader/run-view.js';
import { type TranscriptRequest, asMissing } from './run-transcript.js';
import { previousRunId, readSegment } from './segments.js';

/** The types of steps that show a run in its graph. */
const NODE_STEPS = [
  'node-begun',
  'node-ended',
  'node-replied',
  'items-ended',
  'action-changed',
] as const satisfies readonly DurableStep['type'][];

type NodeStep = Extract<DurableStep, { type: (typeof NODE_STEPS)[number] }>;

/** The answer of a turn that began without a message. The conversation does not have it. */
interface AnswerStep {
  readonly type: 'turn-answered';
  readonly turn: number;
  readonly text: string;
}

/**
 * A step of a run in its graph, and its place in the transcript: before the message with the number
 * `before`. `at`: Unix time in ms, by the server.
 */
export type PlacedNodeStep = (NodeStep | AnswerStep) & {
  readonly before: number;
  readonly at: number;
};

/**
 * Reads the steps of a run in its graph through all its segments, oldest first, from the server and
 * from the archive. Returns none for a run of an agent. Needs no worker.
 */
export async function readNodeSteps(
  client: Client,
  run: RunReading,
  { archive, from = 0, to = Infinity }: TranscriptRequest,
): Promise<readonly PlacedNodeStep[]> {
  if (run.view.state?.graph === undefined) return [];
  const { config, forkedFrom } = run.view.state;
  const about = {
    ownFrom: forkedFrom?.at ?? 0,
    answerJoins: config.definition.graph?.answerJoins === true,
  };
  let steps = placedSteps(run, about);
  let runId = previousRunId(run.events);
  while (runId !== '') {
    const segment = await readSegment(client, { id: run.id, runId, archive }).catch(asMissing);
    if (segment === null) break;
    steps = [...placedSteps({ ...segment, runId }, about), ...steps];
    runId = segment.previousRunId;
  }
  return steps.filter(({ before }) => before >= from && before <= to);
}

/**
 * Returns the steps of one segment in its graph. `ownFrom`: the number of the run's own first message;
 * those before it were copied before anything else happened. `answerJoins`: answers of turns are messages.
 */
function placedSteps(
  { runId, events }: Pick<RunReading, 'runId' | 'events'>,
  { ownFrom, answerJoins }: { readonly ownFrom: number; readonly answerJoins: boolean },
): readonly PlacedNodeStep[] {
  const [started] = events;
  const carried = started?.type === 'started' ? readBegun(started)?.before?.state : undefined;
  let before = carried?.transcript.next ?? ownFrom;
  /** The turns that answer a person, and the turns' last texts of the model. */
  const asked = new Set<number>();
  const texts = new Map<number, string>();
  const note = (message: Message): void => {
    const { role, turn, text, n } = message;
    if (n < ownFrom) return;
    if (role === 'user' && message.origin === undefined) asked.add(turn);
    if (role === 'assistant') texts.set(turn, text);
  };
  const { keptAside = [], messages = [] } = carried?.transcript ?? {};
  for (const message of [...keptAside, ...messages]) note(message);
  const emit = createStepEmitter(runId);
  return events.flatMap((event) =>
    emit(event).flatMap((step): readonly PlacedNodeStep[] => {
      if ('message' in step && typeof step.message === 'object') {
        note(step.message);
        before = step.message.n + 1;
      }
      const place = { before, at: event.at };
      if (step.type === 'turn-ended') {
        const { turn, outcome } = step;
        const { answer: text } = outcome;
        const isAnswer = outcome.status === 'completed' || outcome.status === 'stopped';
        const isShown = asked.has(turn) || !text || text === texts.get(turn);
        return answerJoins && isAnswer && !isShown
          ? [{ type: 'turn-answered', turn, text, ...place } as const]
          : [];
      }
      return isNodeStep(step) ? [{ ...step, ...place }] : [];
    }),
  );
}

function isNodeStep(step: DurableStep): step is NodeStep {
  return NODE_STEPS.some((type) => type === step.type);
}
