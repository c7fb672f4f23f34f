import type { BlockedReason } from './blocked.js';
import { isObject } from './json.js';
import type { FailReason } from './outcome.js';
import type { AttemptReport } from './report.js';

/**
 * What an activity's failure says to the workflow, as the one entry of the failure's details.
 * The failure's type is `Blocked`, `Failed` or `Retry` accordingly.
 */
export type ActivityProblem =
  | {
      readonly type: 'blocked';
      readonly reason: BlockedReason;
      /** For people: what is wrong and the cure. */
      readonly message: string;
      /** Milliseconds before it is worth asking again; absent: the engine's own pace. */
      readonly waitMs?: number;
      /** Of a tool that has changed: its form now, which a person may accept. */
      readonly definition?: string;
      readonly reports?: readonly AttemptReport[];
    }
  | {
      readonly type: 'failed';
      readonly reason: FailReason;
      readonly message: string;
      readonly reports?: readonly AttemptReport[];
    };

/** Reads a problem out of a failure's details; null for a failure that says nothing of the kind. */
export function parseProblem(
  details: readonly unknown[] | null | undefined,
): ActivityProblem | null {
  const [first] = details ?? [];
  if (!isObject(first) || typeof first['reason'] !== 'string') return null;
  if (first['type'] !== 'blocked' && first['type'] !== 'failed') return null;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- our own activities wrote it
  return first as unknown as ActivityProblem;
}
