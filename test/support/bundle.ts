import { bundleWorkflows } from '../../src/workflow-code.js';

let bundle: ReturnType<typeof bundleWorkflows> | undefined;

/** The workflow code of the sources, bundled once per test process. */
export async function sourceBundle(): Promise<Awaited<ReturnType<typeof bundleWorkflows>>> {
  bundle ??= bundleWorkflows();
  return await bundle;
}
