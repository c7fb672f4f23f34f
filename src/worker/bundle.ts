import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { WorkflowBundle, WorkflowBundleOption } from '@temporalio/worker';
import { isObject, parseJson } from '../core/text/json.js';
import { type History, historyFromJson } from '../history/history-event.js';
import { SILENT_LOGGER, sdkVersion } from '../temporal/sdk.js';
import { encodingOf } from '../temporal/server-answers.js';

/** Paths of perdure's modules for Temporal's bundler, compiled or as source. */
export const WORKFLOW_MODULES = {
  /** Each export is a workflow type. */
  workflows: () => modulePath('../workflows/index'),
  interceptors: () => modulePath('../workflows/interceptors'),
  payloadConverter: () => modulePath('../workflows/payload-converter'),
  failureConverter: () => modulePath('../workflows/failure-converter'),
  /** Loads the engine once for all runs, and sets the stack depth of perdure's own workers. */
  preload: () => modulePath('../workflows/preload'),
  /** Loads the engine, without a setting that would affect workflows other than perdure's. */
  engine: () => modulePath('../workflows/agent'),
} as const;

function modulePath(path: string): string {
  const candidates = ['.js', '.ts'].map((end) =>
    fileURLToPath(new URL(path + end, import.meta.url)),
  );
  const found = candidates.find((candidate) => existsSync(candidate));
  if (found !== undefined) return found;
  throw new Error(`perdure: expected one of ${candidates.join(', ')}, got none; install it again`);
}

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

/** The word in workflows/failure-converter.ts, and that of the same length which replaces it. */
const [IN_CLEAR, ENCODED] = ['perdure: failures in clear', 'perdure: failures in coded'];

/**
 * Returns workflow code for a worker that encrypts: the texts of failures become payloads. Code with a
 * failure converter of its own does not change.
 */
export async function sealedWorkflowCode(bundle: WorkflowBundleOption): Promise<WorkflowBundle> {
  const code = 'code' in bundle ? bundle.code : await readFile(bundle.codePath, 'utf8');
  return { ...bundle, code: code.replace(IN_CLEAR, ENCODED) };
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
  // Programs that only start runs import this file, too: the native worker takes 50 MB.
  const { bundleWorkflowCode } = await import('@temporalio/worker');
  return await bundleWorkflowCode({
    workflowsPath: WORKFLOW_MODULES.workflows(),
    workflowInterceptorModules: [WORKFLOW_MODULES.interceptors()],
    payloadConverterPath: WORKFLOW_MODULES.payloadConverter(),
    failureConverterPath: WORKFLOW_MODULES.failureConverter(),
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
    // The bundler reports its progress at level info; a failure is thrown.
    logger: SILENT_LOGGER,
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

/** The result of replaying a recorded history with this version. */
export type ReplayResult =
  | { readonly type: 'same'; readonly events: number }
  /**
   * This version would behave differently than recorded, so a run in flight could not continue with
   * it.
   */
  | { readonly type: 'different'; readonly events: number; readonly reason: string }
  /**
   * The history cannot be replayed: it is truncated or out of order, or its workflow code fails.
   */
  | { readonly type: 'broken'; readonly events: number; readonly reason: string }
  /** The text is not the history of a perdure run. */
  | { readonly type: 'no_history'; readonly reason: string };

/** Replays an exported history (its JSON text) with this version's code and without a server. */
export async function replayHistory(text: string): Promise<ReplayResult> {
  const history = readHistory(text);
  if (typeof history === 'string') return { type: 'no_history', reason: history };
  const encoding = await encodingOf(history);
  if (encoding !== '') {
    const reason = `its payloads are encoded as ${encoding}; decode them before they are replayed`;
    return { type: 'no_history', reason };
  }
  const id = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowId;
  for await (const { replayed } of replayRuns([{ id: id ?? 'exported', history }])) return replayed;
  throw new Error('the replay ended without a result');
}

/** A run with its history. */
export interface RecordedRun {
  /** The workflow id. */
  readonly id: string;
  readonly history: History;
}

/**
 * Replays runs one after another, and yields each with its result. Reads the next run once the last
 * one is done.
 */
export async function* replayRuns<Run extends RecordedRun>(
  runs: AsyncIterable<Run> | Iterable<Run>,
): AsyncGenerator<{ readonly run: Run; readonly replayed: ReplayResult }, void, undefined> {
  const [{ UntimedWorker }, { DeterminismViolationError }, workflowBundle] = await Promise.all([
    import('../temporal/untimed-worker.js'),
    import('@temporalio/workflow'),
    loadWorkflowCode(),
  ]);
  const toResult = ({ history }: RecordedRun, error: unknown): ReplayResult => {
    const events = history.events?.length ?? 0;
    if (error === undefined) return { type: 'same', events };
    const type = error instanceof DeterminismViolationError ? 'different' : 'broken';
    return { type, events, reason: mainSentence(error) };
  };
  const source = iteratorOf(runs);
  for (;;) {
    let current: Run | undefined;
    const feed = async function* () {
      for (let next = await source.next(); !next.done; next = await source.next()) {
        current = next.value;
        yield { history: current.history, workflowId: current.id };
      }
    };
    try {
      for await (const { error } of UntimedWorker.runReplayHistories({ workflowBundle }, feed())) {
        if (current !== undefined) yield { run: current, replayed: toResult(current, error) };
        current = undefined;
      }
      return;
    } catch (error) {
      // A history may end the worker that replays it; the remaining ones get a new worker.
      if (current === undefined) throw error;
      yield { run: current, replayed: toResult(current, error) };
    }
  }
}

function iteratorOf<T>(items: AsyncIterable<T> | Iterable<T>): AsyncIterator<T> | Iterator<T> {
  return Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
}

/** Returns the history, or why this version cannot replay the text. */
function readHistory(text: string): History | string {
  const json = parseJson(text);
  if (json === undefined) return 'it is not JSON';
  if (!isObject(json) || !Array.isArray(json['events'])) {
    return 'it is JSON without a list of events; write one with: perdure export ID --out FILE';
  }
  let history: History;
  try {
    history = historyFromJson({ events: json['events'] });
  } catch (error) {
    return `its events cannot be read (${error instanceof Error ? error.message : String(error)})`;
  }
  const type = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowType?.name;
  if (type === 'agent') return history;
  if (typeof type !== 'string') return 'it does not begin with the start of a workflow';
  return `it is the history of a workflow of type "${type}", not of a perdure agent`;
}

/** Returns the sentence with the reason, which the SDK wraps in a dump of its structures. */
function mainSentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const [, quoted] = /message: ("(?:[^"\\]|\\.)+")/.exec(text) ?? [];
  const sentence = quoted === undefined ? undefined : parseJson(quoted);
  return typeof sentence === 'string' ? sentence : text;
}
