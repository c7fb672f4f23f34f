import { condition, type WorkflowInterceptors } from '@temporalio/workflow';

/** Null if the workflow code was bundled without perdure's interceptors. */
let hasUpdates: boolean | null = null;

/**
 * Notes whether an activation brings updates that the workflow accepts; see `updatesHandled`. A refused one
 * leaves nothing in the history, so a replay would not know of it. The note is shared by all workflows of a V8
 * context, so each of them has to write it, whatever its type.
 */
export function noteUpdates(): WorkflowInterceptors {
  return {
    internals: [
      {
        activate(input, next) {
          hasUpdates = false;
          return next(input);
        },
      },
    ],
    inbound: [
      {
        // Not async, because a promise more would change the order of commands.
        handleUpdate(input, next) {
          hasUpdates = true;
          return next(input);
        },
      },
    ],
  };
}

/**
 * Resolves when the updates that came with the same activation have been handled and answered. So their
 * commands are before those of the loop, however the SDK groups workflow tasks: a worker without the run
 * in its cache gets a task without commands together with the next one, and a later replay gets them one
 * by one if the second has accepted an update. Without updates it is undefined, because a condition in
 * every step makes replay slower.
 */
export function updatesHandled(): Promise<void> | undefined {
  if (hasUpdates === false) return undefined;
  let isAskedAgain = false;
  // The SDK evaluates it once at once, and then after the activation's promises.
  return condition(() => {
    const isDone = isAskedAgain;
    isAskedAgain = true;
    return isDone;
  });
}
