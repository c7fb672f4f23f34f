import type { Reporter, TestModule } from 'vitest/node';

/**
 * Ends a test run with one summary line: `N passed, N failed`. Before it stand the tests that passed
 * at the second try only, which need a repair.
 */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: errors.length, skipped: 0, pending: 0 };
    const flaky: string[] = [];
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        counts[test.result().state] += 1;
        if (test.diagnostic()?.flaky === true) flaky.push(test.fullName);
      }
      // A file that breaks before its first test has no test that could fail.
      if (module.errors().length > 0) counts.failed += 1;
    }
    if (flaky.length > 0) {
      const list = flaky.map((name) => `  ${name}\n`).join('');
      process.stdout.write(`\npassed at the second try, and to be repaired:\n${list}`);
    }
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
    process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed${skipped}\n`);
  }
}
