import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, type WorkflowBundle } from '@temporalio/worker';
import { WORKFLOW_MODULES } from '../../src/worker/bundle.js';

const quiet = (): void => undefined;
const logger = { log: quiet, trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };
let bundle: Promise<WorkflowBundle> | undefined;

/**
 * The workflows of perdure beside those of a project of its own. The first process that needs them bundles
 * them, which takes four seconds of CPU time, and leaves them for the others beside the built program.
 */
export async function ownBundle(): Promise<WorkflowBundle> {
  bundle ??= findOrBundle();
  return await bundle;
}

async function findOrBundle(): Promise<WorkflowBundle> {
  const path = join(process.env['PERDURE_TEST_BUILD'] ?? '', 'own-bundle.js');
  const found = await readFile(path, 'utf8').catch(() => null);
  if (found !== null) return { code: found };
  const made = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('own-workflows.ts', import.meta.url)),
    workflowInterceptorModules: [WORKFLOW_MODULES.interceptors()],
    payloadConverterPath: WORKFLOW_MODULES.payloadConverter(),
    preloadModules: [WORKFLOW_MODULES.preload()],
    logger,
  });
  await writeFile(`${path}.${process.pid}`, made.code);
  await rename(`${path}.${process.pid}`, path);
  return { code: made.code };
}
