import { condition, type WorkflowInterceptors } from '@temporalio/workflow';

/** Null if the workflow code was bundled without perdure's interceptors. */
let hasUpdates: boolean | null = null;

/**
 * Records whether an activation has updates that the workflow accepts; see `updatesHandled`. A
 * refused update leaves nothing in the history, so a replay would not see it. All workflows of a V8
 * context share this flag, so each workflow must set it, regardless of its type.
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
        // This is not async, because an additional promise would change the order of commands.
        handleUpdate(input, next) {
          hasUpdates = true;
          return next(input);
        },
      },
    ],
  };
}

/**
 * Resolves when the updates of the same activation have been handled and answered. Their commands
 * therefore precede those of the loop, regardless of how the SDK groups workflow tasks. A worker
 * that has not cached the run gets a task without commands together with the next one. A later
 * replay gets them separately if the second one accepted an update. Returns undefined without
 * updates, because a condition in every step makes replay slower.
 */
export function updatesHandled(): Promise<void> | undefined {
  if (hasUpdates === false) return undefined;
  let isSecondCheck = false;
  // The SDK evaluates the condition immediately, and again after the activation's promises.
  return condition(() => {
    const isDone = isSecondCheck;
    isSecondCheck = true;
    return isDone;
  });
}
