import {
  DefaultLogger,
  type LogEntry,
  type LogLevel,
  type Logger,
  LogTimestamp,
  Runtime,
  type RuntimeOptions,
  makeTelemetryFilterString,
} from '@temporalio/worker';
import { z } from 'zod';
import { withProgram } from '../core/requests/commands.js';
import { isObject, parseJson } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { KEYS_VARIABLE } from '../encryption/keyring.js';
import { redactFields, redactMessage } from '../secrets/redact.js';
import { setLogger } from '../temporal/sdk-internals.js';
import { PROBE_PREFIX } from '../temporal/pollers.js';
import { KEY_ID } from '../temporal/server-answers.js';
import { isForPeople, logLine, newsFilter } from './log-lines.js';

/**
 * The boundaries of the histograms under OpenTelemetry's conventions, in seconds and tokens. The
 * SDK's own are for milliseconds.
 */
const BUCKETS = {
  gen_ai_client_operation_duration: [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84,
  ],
  gen_ai_client_token_usage: [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576],
};

interface LogOptions {
  /** Writes an entry; default: to stderr, in the SDK's format. */
  readonly write?: (entry: LogEntry) => void;
  /** The IP address with a port at which metrics are served to Prometheus; null, the default: none. */
  readonly metrics?: string | null;
  /** Returns a text whose commands can be pasted; default: those that work in a project. */
  readonly runnable?: (text: string) => string;
}

/**
 * Sets the minimum level at which Temporal's SDK logs, with secrets redacted. The SDK has one
 * runtime per process, so only the first call has an effect. Only a program may call it, not a library.
 * Throws the SDK's error if it cannot serve the metrics.
 */
export function installRuntime(level: LogLevel = 'WARN', options: LogOptions = {}): void {
  try {
    Runtime.install(runtimeOptions(level, options));
  } catch (error) {
    if (options.metrics) throw error;
    // The process already has a runtime, which stays.
  }
}

/**
 * Sets what a runtime logs that the process may need later for tests: only what is wrong, one line for each
 * problem a minute. Has no effect if the process has a runtime, or has had one. A runtime that no worker uses keeps its
 * process alive, so none is made here.
 */
export function prepareTestRuntime(): void {
  const { _instance: runtime, defaultOptions: remembered } = Runtime;
  if (runtime !== undefined || remembered.logger !== undefined) return;
  const isNews = newsFilter();
  const write = (entry: LogEntry): void => {
    if (isNews(entry)) process.stderr.write(`${logLine(entry)}\n`);
  };
  Runtime.defaultOptions = runtimeOptions('WARN', { write });
}

function runtimeOptions(
  level: LogLevel,
  { write, metrics = null, runnable }: LogOptions,
): RuntimeOptions {
  return {
    // The SDK's own logger formats the entries.
    logger: guarded(new DefaultLogger(level, write), runnable),
    telemetryOptions: {
      logging: {
        filter: makeTelemetryFilterString({ core: level, other: 'ERROR' }),
        forward: {},
      },
      ...(metrics !== null && {
        metrics: {
          prometheus: { bindAddress: metrics, histogramBucketOverrides: BUCKETS },
        },
      }),
    },
  };
}

/**
 * Installs the SDK's runtime with these options; its logger receives no secrets. Throws the SDK's
 * error if the process has a runtime already.
 */
export function installRuntimeOf({ logger = programLogger(), ...rest }: RuntimeOptions): void {
  Runtime.install({ ...rest, logger: guarded(logger) });
}

/** Whether an entry says that a worker has begun or ended: without it, a program would seem to hang. */
function isLifeSign({ meta }: LogEntry): boolean {
  const { sdkComponent, state } = meta ?? {};
  return sdkComponent === 'worker' && (state === 'RUNNING' || state === 'STOPPED');
}

/** Returns a logger for a program without one: in the SDK's format, what people should see. */
export function programLogger(): Logger {
  const shown = new DefaultLogger('INFO');
  return new DefaultLogger('INFO', (entry) => {
    const { level, message, meta, timestampNanos } = entry;
    if (isForPeople(entry) || isLifeSign(entry))
      shown.log(level, message, { ...meta, [LogTimestamp]: timestampNanos });
  });
}

/**
 * Keeps secrets and, while a worker encrypts, texts of runs out of the log of this process, whoever has
 * made its runtime: the SDK makes one with the first connection of a worker. Workers that are created
 * later use the logger that this leaves in the runtime. `createLogger`: returns that of a process without a
 * runtime; default: the SDK's own.
 */
export function guardLog(createLogger: () => Logger = () => new DefaultLogger()): void {
  const { _instance: runtime, defaultOptions: remembered } = Runtime;
  // The SDK makes the runtime anew, with the options of the last one, where its workers have ended.
  if (remembered.logger !== undefined && guards.has(remembered.logger)) return;
  if (runtime === undefined) installRuntimeOf({ logger: createLogger(), ...remembered });
  else if (!guards.has(runtime.logger)) setLogger(runtime, guarded(runtime.logger));
}

/** The loggers that redact. */
const guards = new WeakSet<Logger>();

/**
 * Returns a logger that passes entries on to another one, without secrets, and with commands that can be
 * pasted.
 */
function guarded(
  logger: Logger,
  runnable: (text: string) => string = (text) => withProgram(text),
): Logger {
  // The SDK logs each activity at `DEBUG`: entries that the logger would drop are not redacted.
  const level = logger instanceof DefaultLogger ? logger.level : 'TRACE';
  const redacting = new DefaultLogger(level, (entry) => {
    if (isLoggedTurn(entry) || isOfProbe(entry) || isIdle(entry)) return;
    const lack = keyLack(entry);
    if (lack !== null) {
      if (isFirst(lack.of)) logger.log(entry.level, lack.message, lack.meta);
      return;
    }
    const { level: given, timestampNanos } = entry;
    const isHidden = encrypting > 0 || isTask(entry);
    const { message, meta } = isHidden ? withoutTexts(entry) : entry;
    const fields = { ...(meta && redactFields(meta)), [LogTimestamp]: timestampNanos };
    logger.log(given, redactMessage(runnable(message)), fields);
  });
  guards.add(redacting);
  return redacting;
}

/** The workers of this process that encrypt. */
let encrypting = 0;

/**
 * Keeps texts of runs out of this process's log while a worker encrypts: an error may quote a message,
 * an argument, or a reply, and a tool may log one. Readers with the key find the errors in the run.
 * Returns a function for the end of the worker.
 */
export function hideTexts(): () => void {
  encrypting += 1;
  return () => {
    encrypting -= 1;
  };
}

const HIDDEN = '(encrypted)';
/** The fields of an entry that hold no text of a run. */
const SAFE_FIELDS = new Set(
  (
    'sdkComponent taskQueue namespace activityId activityType workflowId workflowRunId runId workflowType ' +
    'attempt isLocal durationMs decision'
  ).split(' '),
);

/** Returns an entry without what a tool, a model, or an error says in it. */
function withoutTexts({ message, meta = {} }: LogEntry): Pick<LogEntry, 'message' | 'meta'> {
  const fields = Object.entries(meta).filter(([name]) => SAFE_FIELDS.has(name));
  const { error, report } = meta;
  const shown = {
    ...Object.fromEntries(fields),
    ...(error instanceof Error && { error: error.name }),
    ...(isObject(report) && { report: { ...report, message: HIDDEN } }),
  };
  // The workflow logs numbers and codes only.
  if (meta['sdkComponent'] === 'workflow') return { message, meta: shown };
  // What a tool logs comes with the fields that it gave.
  if ('fields' in meta) return { message: HIDDEN, meta: shown };
  const [head = '', ...rest] = message.split(/: |; |, but /, 2);
  return { message: rest.length === 0 ? head : `${head}: ${HIDDEN}`, meta: shown };
}

/** An activity whose heartbeat this worker cannot read, in an entry without the whole task. */
interface KeyLack extends Pick<LogEntry, 'message' | 'meta'> {
  /** The activity, in all of its attempts. */
  readonly of: string;
}

const NO_HEARTBEAT =
  /ActivityTask\.start: Failed to parse heartbeat details .*(?:Unknown encoding|it is encrypted with)/s;

/**
 * Returns the entry in place of the SDK's about an activity that a worker with a key began, and that this
 * worker cannot continue without the key; null for any other entry.
 */
function keyLack({ message, meta = {}, timestampNanos }: LogEntry): KeyLack | null {
  if (!NO_HEARTBEAT.test(message)) return null;
  const task: unknown = typeof meta['task'] === 'string' ? parseJson(meta['task']) : null;
  const found = unreadTask.safeParse(task);
  if (!found.success) return null;
  const { workflowExecution, activityId, activityType, attempt, heartbeatDetails } =
    found.data.start;
  const { workflowId, runId } = workflowExecution;
  const [id = ''] = heartbeatDetails.map(({ metadata }) =>
    Buffer.from(metadata[KEY_ID], 'base64').toString(),
  );
  const { sdkComponent, taskQueue } = meta;
  return {
    of: `${runId} ${activityId}`,
    message: `a worker with key ${show(id)} began this activity, and this worker does not have the key, so it cannot continue it; add the key to ${KEYS_VARIABLE}, or to \`encryption\` of the configuration`,
    meta: {
      sdkComponent,
      taskQueue,
      workflowId,
      workflowRunId: runId,
      activityType,
      attempt,
      [LogTimestamp]: timestampNanos,
    },
  };
}

/** The part of an activity's task that `keyLack` needs, as the SDK logs it. */
const unreadTask = z.object({
  start: z.object({
    workflowExecution: z.object({ workflowId: z.string(), runId: z.string() }),
    activityId: z.string(),
    activityType: z.string(),
    attempt: z.number().optional(),
    heartbeatDetails: z.array(z.object({ metadata: z.object({ [KEY_ID]: z.string() }) })),
  }),
});

const reported = new Set<string>();
const MAX_REPORTED = 1_000;

/** Returns whether nothing was reported of this yet: each attempt fails in the same way. */
function isFirst(of: string): boolean {
  if (reported.has(of)) return false;
  if (reported.size >= MAX_REPORTED) reported.clear();
  reported.add(of);
  return true;
}

/** Returns whether an entry has a whole task in it, with all payloads: the SDK logs each of them so. */
function isTask({ level, meta }: LogEntry): boolean {
  return level === 'TRACE' && meta?.['sdkComponent'] === 'worker';
}

/** Returns whether an entry is about a probe that ended before the worker answered. The answer is not needed. */
function isOfProbe({ level, meta }: LogEntry): boolean {
  const id = meta?.['workflowId'];
  return level !== 'ERROR' && typeof id === 'string' && id.startsWith(PROBE_PREFIX);
}

/** Whether an entry is the SDK's about a part of it that perdure does not use. */
function isIdle({ message }: LogEntry): boolean {
  return message.startsWith('No Nexus services registered');
}

/**
 * Returns whether an entry is the SDK's about a run that ended with a failed turn. The workflow has
 * logged that turn, without the text of the error.
 */
function isLoggedTurn({ message, meta }: LogEntry): boolean {
  if (message !== 'Workflow failed' || meta?.['workflowType'] !== 'agent') return false;
  const { error } = meta;
  return error instanceof Error && /^[a-z_]+: /.test(error.message);
}
