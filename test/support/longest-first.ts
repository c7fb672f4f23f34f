import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take half a minute or more, longest first, relative to `test` and without `.test.ts`.
 */
const LONGEST = [
  'docs-run',
  'http/serve',
  'cli/terminal',
  'package/installed',
  'package/starter',
  'cli/own-worker',
  'run/secrets-everywhere',
  'client/erase-runs',
  'run/retention',
  'run/deployments',
  'memory/random-scripts',
  'run/mcp',
  'server/temporal-cli',
  'run/long-runs',
  'encryption/hashed-ids',
  'run/blocked-runs',
  'package/entries',
  'encryption/tenants',
  'cli/mcp',
  'run/inline-reads',
  'http/mcp-conformance',
  'encryption/canaries',
  'encryption/find-hashed-ids',
  'run/ask-through-faults',
  'http/openai-tools',
  'http/openai',
  'encryption/keys',
  'run/messages-by-signal',
  'live/server',
  'cli/doctor-routing',
  'run/plugin',
  'cli/eval',
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
