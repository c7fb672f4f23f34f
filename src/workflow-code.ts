import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, type WorkflowBundle } from '@temporalio/worker';

/** Made by the build; absent when perdure runs from its sources. */
const PREBUILT = fileURLToPath(new URL('./workflow-bundle.js', import.meta.url));

let bundled: Promise<WorkflowBundle> | undefined;

/** The workflow code for workers: the prebuilt bundle (0.3 s to ready), else bundled once per process (2 s). */
export async function workflowCode(): Promise<WorkflowBundle | { codePath: string }> {
  if (existsSync(PREBUILT)) return { codePath: PREBUILT };
  bundled ??= bundleWorkflows();
  return await bundled;
}

export async function bundleWorkflows(): Promise<WorkflowBundle> {
  return await bundleWorkflowCode({
    workflowsPath: here('./workflows/index'),
    payloadConverterPath: here('./workflows/payload-converter'),
    preloadModules: [here('./workflows/preload')],
    logger: silent,
  });
}

/** A module of perdure, compiled or as source. */
function here(path: string): string {
  const candidates = ['.js', '.ts'].map((end) =>
    fileURLToPath(new URL(path + end, import.meta.url)),
  );
  const found = candidates.find((candidate) => existsSync(candidate));
  if (found === undefined)
    throw new Error(`a part of perdure is missing: ${candidates.join(', ')}`);
  return found;
}

const nothing = (): void => undefined;
/** The bundler reports its progress at level info; a failure is thrown. */
const silent = {
  log: nothing,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
};
