import type { Fact, Task } from '../../core/facts.js';
import { isOutcome } from '../../core/guards/recorded.js';
import type { JsonObject } from '../../core/json.js';
import type { HistoryEvent } from '../history-event.js';
import type { ReadRun } from './run-view.js';

/** The local activity in the first workflow task. The history has only its result. */
const LOCAL_LOAD: Task = { activity: 'loadAgent', input: { local: true } };

/** Activities that the workflow does not wait for when it cancels them. */
const NOT_AWAITED: readonly string[] = [
  'loadAgent',
  'archiveMessages',
  'forkMessages',
  'checkBlob',
];

/** Whether the run ignores an activity's result after it has canceled the activity. */
export function isOverOnCancel(activity: string): boolean {
  return NOT_AWAITED.includes(activity);
}

/**
 * Returns the fact that an event of the history records; null if it records none. `at`: the
 * workflow's clock.
 */
export function toFact(run: ReadRun, event: HistoryEvent, at: number): Fact | null {
  switch (event.type) {
    case 'cancel-requested':
      return { type: 'cancel-requested', at };
    case 'update': {
      const { request, updateId: id } = event;
      return request && { type: 'update', ...request, id, at };
    }
    case 'signal':
      return { type: 'signal', name: event.name, input: event.input, at };
    case 'local': {
      if (event.activity !== 'loadAgent') return null;
      const { failure, result } = event;
      if (failure !== undefined) return { type: 'failed', task: LOCAL_LOAD, failure, at };
      return { type: 'completed', task: LOCAL_LOAD, result, at };
    }
    case 'scheduled':
      return { type: 'scheduled', task: { activity: event.activity, input: event.input }, at };
    case 'completed': {
      const task = run.inFlight.get(event.scheduled);
      return task ? { type: 'completed', task, result: event.result, at } : null;
    }
    case 'failed': {
      const task = run.inFlight.get(event.scheduled);
      return task ? { type: 'failed', task, failure: event.failure, at } : null;
    }
    case 'cancelled': {
      const task = run.inFlight.get(event.scheduled);
      return task ? { type: 'cancelled', task, details: event.details, at } : null;
    }
    case 'activity-cancel-requested': {
      const task = run.inFlight.get(event.scheduled);
      return task && isOverOnCancel(task.activity) ? { type: 'cancelled', task, at } : null;
    }
    case 'child-started':
      return { type: 'scheduled', task: { activity: 'agent', input: childInput(event) }, at };
    case 'child-existed':
      return { type: 'child-existed', call: event.call, at };
    case 'child-ended': {
      const { call, message, result } = event;
      const outcome = isOutcome(result) ? result : null;
      return { type: 'child-ended', call, outcome, message, at };
    }
    default:
      return null;
  }
}

function childInput({
  call,
  child,
}: {
  readonly call: string;
  readonly child: string;
}): JsonObject {
  return { call, run: child };
}
