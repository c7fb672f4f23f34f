import type { LogEntry } from '@temporalio/worker';
import { isObject } from '../../core/json.js';
import { visible } from '../../core/text/summaries.js';

/** What the SDK adds to each entry; the rest is what a tool gave with its message. */
const OWN_FIELDS = new Set(
  (
    'sdkComponent taskQueue namespace taskToken activityId activityType workflowId workflowRunId ' +
    'workflowType attempt isLocal durationMs error report decision'
  ).split(' '),
);

/** Warnings, and what tools say by their `log`; not how the SDK is doing. */
export function isForPeople({ level, meta }: LogEntry): boolean {
  if (level === 'WARN' || level === 'ERROR') return true;
  return level === 'INFO' && meta?.['sdkComponent'] === 'activity';
}

/** An entry as one line: `14:39:31 WARN model call failed · run x · callModel, attempt 2: too many requests`. */
export function logLine({ level, message, meta = {}, timestampNanos }: LogEntry): string {
  const time = new Date(Number(timestampNanos / 1_000_000n)).toISOString().slice(11, 19);
  const { workflowId, activityType, attempt } = meta;
  const parts = [
    message,
    ...(typeof workflowId === 'string' ? [`run ${workflowId}`] : []),
    ...(typeof activityType === 'string' ? [`${activityType}, attempt ${String(attempt)}`] : []),
  ].map((part) => visible(part));
  const more = detailOf(meta);
  return `${time} ${level} ${parts.join(' · ')}${more === '' ? '' : `: ${visible(more)}`}`;
}

/** Of an error its message, of a failed model call what its report says, else what a tool adds. */
function detailOf(meta: Record<string, unknown>): string {
  const { error, report } = meta;
  if (error instanceof Error) return error.message;
  if (isObject(report) && typeof report['message'] === 'string') return report['message'];
  const fields = Object.entries(meta).filter(([name]) => !OWN_FIELDS.has(name));
  return fields.length === 0 ? '' : JSON.stringify(Object.fromEntries(fields));
}
