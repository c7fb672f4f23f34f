import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { sdkVersion } from '../../src/temporal/sdk.js';
import { workerRuntime } from '../../src/temporal/sdk-internals.js';

/**
 * The private parts of the SDK that runs in memory need. A new version of the SDK may move or change them: the
 * name of the failing test says which.
 */
const own = createRequire(import.meta.url);
const worker = createRequire(own.resolve('@temporalio/worker'));
const VERSION = sdkVersion();

const SCRIPT = `
globalThis.__webpack_module_cache__;
globalThis.__TEMPORAL__ = { api: {}, preloadModules() {}, importWorkflows: () => ({}), importInterceptors: () => [] };
`;

function moduleAt(path: string): Readonly<Record<string, unknown>> {
  const loaded: Readonly<Record<string, unknown>> = worker(path);
  return loaded;
}

describe(`the workflow runtime of the SDK ${VERSION}`, () => {
  test('ReusableVMWorkflowCreator takes a script, a bundle, a timeout, and names', () => {
    const { ReusableVMWorkflowCreator: creator } = moduleAt(
      '@temporalio/worker/lib/workflow/reusable-vm',
    );
    expect(creator).toBeTypeOf('function');
    expect(Object(creator)).toHaveLength(5);
    const made = workerRuntime().createWorkflows(SCRIPT, '/bundle.js', new Set());
    expect(made).toHaveProperty('createWorkflow');
  });

  test('ReusableVMWorkflowCreator.unhandledRejectionHandlerHasBeenSet keeps its handler out', () => {
    const { ReusableVMWorkflowCreator: creator } = moduleAt(
      '@temporalio/worker/lib/workflow/reusable-vm',
    );
    expect(Object(creator)).toHaveProperty('unhandledRejectionHandlerHasBeenSet');
    const before = process.listenerCount('unhandledRejection');
    workerRuntime().createWorkflows(SCRIPT, '/bundle.js', new Set());
    expect(process.listenerCount('unhandledRejection')).toBe(before);
  });

  test('its workflows have activate, getAndResetSinkCalls, and dispose', () => {
    const { ReusableVMWorkflow: workflow } = moduleAt(
      '@temporalio/worker/lib/workflow/reusable-vm',
    );
    const { prototype } = Object(workflow);
    expect(prototype).toHaveProperty('activate');
    expect(prototype).toHaveProperty('getAndResetSinkCalls');
    expect(prototype).toHaveProperty('dispose');
  });
});

describe(`the activity execution of the SDK ${VERSION}`, () => {
  test('Activity takes ten arguments, and has run, cancel, context, and abortController', () => {
    const { Activity } = workerRuntime();
    expect(Activity).toHaveLength(10);
    expect(Activity.prototype).toHaveProperty('run');
  });
});

describe(`the messages of the SDK ${VERSION}`, () => {
  test('Long.fromNumber makes its integers', () => {
    expect(
      workerRuntime()
        .toInt64(2 ** 40)
        .toString(),
    ).toBe(String(2 ** 40));
  });

  test('WorkflowActivation.fromObject knows the jobs of an activation', () => {
    const job = { queryWorkflow: { queryId: 'q', queryType: 'status', arguments: [] } };
    const { jobs } = workerRuntime().toActivation({ jobs: [job] });
    expect(jobs?.[0]).toMatchObject({ variant: 'queryWorkflow' });
  });

  test('EventType numbers all events that runs in memory record', () => {
    const { eventTypes } = workerRuntime();
    expect(eventTypes).toMatchObject({
      EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: 1,
      EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: 41,
      EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED: 46,
    });
  });
});
