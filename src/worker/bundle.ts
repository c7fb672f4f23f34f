import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, type WorkflowBundle } from '@temporalio/worker';
import { isObject, parseJson } from '../core/json.js';
import { sdkVersion } from '../temporal/sdk.js';
import { WORKFLOW_MODULES } from './workflow-modules.js';

/** The bundle that the build creates; absent if perdure runs from its sources. */
const PREBUILT = fileURLToPath(new URL('../workflow-bundle.js', import.meta.url));
/** Records the version of the SDK that made the bundle. */
const PREBUILT_BY = new URL('../workflow-bundle.json', import.meta.url);

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));

let bundled: Promise<WorkflowBundle> | undefined;

/**
 * Returns the workflow code for workers: the prebuilt bundle (0.3 s to ready) if it was made with
 * the installed SDK, else a bundle made once per process (2 s).
 */
export async function loadWorkflowCode(): Promise<WorkflowBundle | { codePath: string }> {
  if ((await prebuiltBy()) === sdkVersion()) return { codePath: PREBUILT };
  bundled ??= bundleWorkflows();
  return await bundled;
}

/** Gives the bundle that workers of this process take instead of making one from the sources. */
export function setWorkflowCode(bundle: WorkflowBundle): void {
  bundled = Promise.resolve(bundle);
}

/** Returns the version of the SDK that made the prebuilt bundle; null if there is no such bundle. */
async function prebuiltBy(): Promise<unknown> {
  const record = parseJson(await readFile(PREBUILT_BY, 'utf8').catch(() => ''));
  return isObject(record) ? record['sdk'] : null;
}

/** Bundles perdure's workflow code with Temporal's bundler. */
export async function bundleWorkflows(): Promise<WorkflowBundle> {
  return await bundleWorkflowCode({
    workflowsPath: WORKFLOW_MODULES.workflows(),
    workflowInterceptorModules: [WORKFLOW_MODULES.interceptors()],
    payloadConverterPath: WORKFLOW_MODULES.payloadConverter(),
    preloadModules: [WORKFLOW_MODULES.preload()],
    webpackConfigHook: (config) => ({
      ...config,
      // Module names are relative to the package, so the same sources give the same code
      // everywhere.
      context: PACKAGE,
      module: { ...config.module, rules: config.module?.rules?.map(keepSyntax) ?? [] },
      // Every worker parses the source map when it starts, and the sources are half of it.
      devtool: 'inline-nosources-source-map',
    }),
    logger: silent,
  });
}

/**
 * Preserves the syntax of the sources, as the build does. The SDK compiles TypeScript for ES2017,
 * where each spread of an object is a slow function; that made replay a tenth slower.
 */
function keepSyntax<Rule>(rule: Rule): Rule {
  if (!isObject(rule) || !isObject(rule['use'])) return rule;
  const { options } = rule['use'];
  if (!isObject(options) || !isObject(options['jsc'])) return rule;
  const jsc = { ...options['jsc'], target: 'es2022' };
  return { ...rule, use: { ...rule['use'], options: { ...options, jsc } } };
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
