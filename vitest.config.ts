import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import LongestFirst from './test/support/longest-first.js';

/**
 * Tests that need no Temporal server. They share processes, which halves their run time.
 */
const PURE = [
  'test/{activities,agents,core,graphs,mcp,models,output,prompts,requests,secrets,storage,testing,tools}/**/*.test.ts',
  // The pages, as texts, and programs that are compiled only.
  'test/docs{,-commands,-figures,-names,-questions}.test.ts',
  'test/mutate.test.ts',
  'test/package/{examples,llms,public-types,reference}.test.ts',
];

/** Returns the source of an entry point, since `dist` may be outdated. */
const source = (name: string): string =>
  fileURLToPath(new URL(`./src/${name}.ts`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^perdure$/, replacement: source('index') },
      { find: /^perdure\/([\w-]+)$/, replacement: source('$1') },
    ],
  },
  test: {
    // The SDK's native module does not support worker threads.
    pool: 'forks',
    // Memory is available and no code runs for long: few collections of a large young generation,
    // and machine code from the first call on, save a third of the CPU time.
    execArgv: ['--max-semi-space-size=128', '--single-threaded-gc', '--always-sparkplug'],
    sequence: { sequencer: LongestFirst },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Generous, because a busy machine is slow; a missing event still fails the test.
    expect: { poll: { timeout: 40_000 } },
    reporters: ['default', './test/support/count-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'pure',
          include: PURE,
          isolate: false,
          // They rarely wait, and each process loads all modules anew.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'server',
          // They wait for servers and processes most of the time.
          maxWorkers: 6,
          sequence: { groupOrder: 0 },
          // A race between a test and a busy server is reported, and does not hide the other results.
          retry: 1,
          // A separate process for each file would cost 1.5 s of CPU time.
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: PURE,
          globalSetup: ['test/support/global-setup.ts'],
          setupFiles: ['test/support/quiet.ts'],
        },
      },
    ],
  },
});
