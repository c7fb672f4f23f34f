import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take half a minute or more, longest first, relative to `test` and without `.test.ts`.
 */
const LONGEST = [
  'run/long-runs',
  'run/extractions',
  'cli/worker',
  'package/installed',
  'server/server-death',
  'run/ask-through-faults',
  'run/standing-runs',
  'client/schedule',
  'run/crash',
  'history/events',
  'run/effects',
  'run/idle-runs',
  'run/secrets-everywhere',
  'run/model-faults',
  'cli/attach',
  'cli/send',
  'cli/replay-from-server',
  'server/ensure-server',
  'run/kill-worker',
  'run/answers-kill',
  'run/storage',
  'run/compaction',
  'run/fork',
  'run/frozen-worker',
  'run/mcp-servers',
  'run/prompts',
];

/**
 * Starts the longest files first, so that a test run does not end with one long file running alone,
 * and the projects one after the other, so that files share processes.
 */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // This does not sort an array.
    // oxlint-disable-next-line unicorn/no-array-sort
    const sorted = await super.sort(files);
    const rank = (spec: TestSpecification): number => {
      if (spec.project.name !== 'server') return LONGEST.length + 1;
      const index = LONGEST.findIndex((name) => spec.moduleId.endsWith(`/test/${name}.test.ts`));
      return index < 0 ? LONGEST.length : index;
    };
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}
