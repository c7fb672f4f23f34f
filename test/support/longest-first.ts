import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take half a minute or more, longest first, relative to `test` and without `.test.ts`.
 */
const LONGEST = [
  'run/blocked-runs',
  'run/ask-through-faults',
  'run/long-runs',
  'run/secrets-everywhere',
  'package/installed',
  'package/starter',
  'package/entries',
  'memory/random-scripts',
  'memory/both-worlds',
  'run/many-callers',
  'history/archived-runs',
  'run/model-faults',
  'history/run-transcript',
  'run/frozen-worker',
  'run/effects',
  'graph-runs/plans-durable',
  'run/mcp-servers',
  'run/s3',
  'run/crash',
  'cli/doctor-routing',
  'cli/archived-run',
  'cli/hidden-characters',
  'cli/attach',
  'run/plugin',
  'run/retrieve',
  'run/fork',
  'cli/mcp',
  'cli/list',
  'cli/full-disk',
  'run/prompts',
];

/** The files that need no server and take longer than all the others of them together. */
const LONGEST_PURE = ['core/text-functions', 'core/regular-expressions'];

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
      const isNamed = (name: string): boolean => spec.moduleId.endsWith(`/test/${name}.test.ts`);
      if (spec.project.name !== 'server') {
        return LONGEST.length + (LONGEST_PURE.some(isNamed) ? 1 : 2);
      }
      const index = LONGEST.findIndex(isNamed);
      return index < 0 ? LONGEST.length : index;
    };
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}
