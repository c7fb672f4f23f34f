import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, type WorkflowBundle } from '@temporalio/worker';
import { WORKFLOW_MODULES } from '../../src/worker/workflow-modules.js';

const quiet = (): void => undefined;
const logger = { log: quiet, trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };
let bundle: Promise<WorkflowBundle> | undefined;

/** perdure's workflows together with those of another project, bundled once per process. */
export async function ownBundle(): Promise<WorkflowBundle> {
  bundle ??= bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('own-workflows.ts', import.meta.url)),
    workflowInterceptorModules: [WORKFLOW_MODULES.interceptors()],
    payloadConverterPath: WORKFLOW_MODULES.payloadConverter(),
    preloadModules: [WORKFLOW_MODULES.preload()],
    logger,
  });
  return await bundle;
}
