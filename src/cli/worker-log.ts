import type { LogEntry } from '@temporalio/worker';
import { isObject } from '../core/json.js';
import { visible } from '../core/summaries.js';

/** An entry of the worker's log as one line: `14:39:31 WARN model call failed · run x · callModel, attempt 2: …`. */
export function logLine({ level, message, meta = {}, timestampNanos }: LogEntry): string {
  const time = new Date(Number(timestampNanos / 1_000_000n)).toISOString().slice(11, 19);
  const { workflowId, activityType, attempt } = meta;
  const where = [
    ...(typeof workflowId === 'string' ? [`run ${workflowId}`] : []),
    ...(typeof activityType === 'string' ? [`${activityType}, attempt ${String(attempt)}`] : []),
  ];
  const why = reasonIn(meta);
  return `${time} ${level} ${visible([message, ...where].join(' · '))}${why === '' ? '' : `: ${visible(why)}`}`;
}

/** Of an error its message, of a failed model call what its report says. */
function reasonIn({ error, report }: Record<string, unknown>): string {
  if (error instanceof Error) return error.message;
  return isObject(report) && typeof report['message'] === 'string' ? report['message'] : '';
}
