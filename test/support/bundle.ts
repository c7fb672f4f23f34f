import { readFile } from 'node:fs/promises';
import type { WorkflowBundle } from '@temporalio/worker';
import { inject } from 'vitest';

let bundle: Promise<WorkflowBundle> | undefined;

/** The workflow code of the sources, bundled once per test run. */
export async function sourceBundle(): Promise<WorkflowBundle> {
  bundle ??= readFile(inject('workflowBundle'), 'utf8').then((code) => ({ code }));
  return await bundle;
}
