import type { LogEntry } from '@temporalio/worker';
import { visible, visibleMessage } from '../core/state/summaries.js';
import { isObject } from '../core/text/json.js';

/** The fields that the SDK adds to each entry; any others come from a tool. */
const SDK_FIELDS = new Set(
  (
    'sdkComponent taskQueue namespace taskToken activityId activityType workflowId workflowRunId runId ' +
    'workflowType attempt isLocal durationMs error report decision'
  ).split(' '),
);

/** Returns whether a person should see a log entry: warnings, errors, and what tools log. */
export function isForPeople({ level, meta }: LogEntry): boolean {
  if (level === 'WARN' || level === 'ERROR') return true;
  return level === 'INFO' && meta?.['sdkComponent'] === 'activity';
}

/** For how long a warning is not repeated. */
const QUIET_MS = 60_000;
const MAX_WARNINGS = 1_000;

/**
 * Returns a function that returns whether a log entry says anything new. Each attempt at an activity may fail in
 * the same way every second; that is one warning a minute.
 */
export function newsFilter(): (entry: LogEntry) => boolean {
  /** The warnings without times and attempts, with the Unix times in ms at which they were shown. */
  const shown = new Map<string, number>();
  return (entry) => {
    if (entry.level !== 'WARN') return true;
    const now = Number(entry.timestampNanos / 1_000_000n);
    const same = logLine({ ...entry, timestampNanos: 0n, meta: { ...entry.meta, attempt: 0 } });
    if (now - (shown.get(same) ?? -Infinity) < QUIET_MS) return false;
    if (shown.size >= MAX_WARNINGS) shown.clear();
    shown.set(same, now);
    return true;
  };
}

/**
 * Formats an entry as one line:
 * `14:39:31 WARN model call failed · run x · callModel, attempt 2: too many requests`.
 */
export function logLine({ level, message, meta = {}, timestampNanos }: LogEntry): string {
  const time = new Date(Number(timestampNanos / 1_000_000n)).toISOString().slice(11, 19);
  const { workflowId, activityType, attempt } = meta;
  const parts = [
    ...(typeof workflowId === 'string' ? [`run ${workflowId}`] : []),
    ...(typeof activityType === 'string' ? [`${activityType}, attempt ${String(attempt)}`] : []),
  ].map((part) => visible(part));
  const named = [visibleMessage(message), ...parts].join(' · ');
  const details = logDetails(meta);
  return `${time} ${level} ${named}${details === '' ? '' : `: ${details}`}`;
}

/**
 * Returns the message of an error or of a failed model call's report, else the fields of a tool.
 */
function logDetails(meta: Record<string, unknown>): string {
  const { error, report } = meta;
  if (error instanceof Error) return visibleMessage(error.message);
  if (isObject(report) && typeof report['message'] === 'string') {
    return visibleMessage(report['message']);
  }
  const fields = Object.entries(meta).filter(([name]) => !SDK_FIELDS.has(name));
  return fields.length === 0 ? '' : visible(JSON.stringify(Object.fromEntries(fields)));
}
