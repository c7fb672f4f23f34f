import { defineConfig } from 'vitest/config';

/** `npm run test:live`: tests that need a real model. Never part of `npm test`. */
export default defineConfig({
  test: {
    include: ['test/*.live.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/quiet.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 600_000,
    hookTimeout: 120_000,
    reporters: ['default', './test/support/count-reporter.ts'],
  },
});
