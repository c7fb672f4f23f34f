import type { History } from '../../src/history/history-event.js';
import { isObject } from '../../src/core/text/json.js';
import { markersOf, type Script } from '../conversation.js';

/**
 * Every payload of a history as text, in whatever field it is, except for the run's own result,
 * which necessarily repeats the answer.
 */
function payloadTexts(history: History): readonly string[] {
  return texts(history.events?.filter((event) => !event.workflowExecutionCompletedEventAttributes));
}

function texts(value: unknown): readonly string[] {
  if (value instanceof Uint8Array) return [Buffer.from(value).toString('utf8')];
  if (Array.isArray(value)) return value.flatMap(texts);
  return isObject(value) ? Object.values(value).flatMap(texts) : [];
}

/** Messages of a conversation that the history lacks, or contains more than once. */
export function misrecorded(
  history: History,
  script: Script,
): { readonly lost: number; readonly doubled: number } {
  const all = payloadTexts(history).join('\n');
  const counts = markersOf(script).map((marker) => all.split(marker).length - 1);
  return {
    lost: counts.filter((count) => count === 0).length,
    doubled: counts.filter((count) => count > 1).length,
  };
}
