import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { expect, test } from 'vitest';
import { bench } from '../../src/cli/commands/bench.js';
import { checkDelivery } from '../../src/cli/bench/settings.js';
import { DYNAMIC_CONFIG } from '../../src/server/server-settings.js';
import { runInProcess } from '../support/in-process.js';
import { testServer } from '../support/temporal-server.js';

/** The defaults of a server, which replace the settings of the embedded one. */
const DEFAULTS = [
  'matching.numTaskqueueReadPartitions=4',
  'matching.numTaskqueueWritePartitions=4',
  'history.MaxBufferedQueryCount=1',
  'history.defaultWorkflowTaskTimeout="10s"',
  'system.enableCancelActivityWorkerCommand=false',
  'frontend.WorkerCommandsEnabled=false',
  'history.workflowIdReuseMinimalInterval="1s"',
  'history.maxInFlightUpdates=10',
  'matching.enableFairness=false',
];
const LIMIT_MS = 180_000;

/** Measures a server with these settings, and returns the report and what is left there. */
async function measured(settings: readonly string[]) {
  const { address, stop } = await testServer(settings);
  const home = await mkdtemp(join(tmpdir(), 'perdure-test-'));
  // More than the default, for a busy machine.
  const options = { seconds: 150 };
  const place = { home, address, json: true, config: false } as const;
  const { code, stdout, stderr } = await runInProcess(bench, options, place);
  const connection = await Connection.connect({ address });
  const open = { namespace: 'default', query: "ExecutionStatus = 'Running'" };
  await expect
    .poll(async () => (await connection.workflowService.countWorkflowExecutions(open)).count)
    .toSatisfy((count) => Number(count) === 0);
  await connection.close();
  await stop();
  await rm(home, { recursive: true, force: true });
  return { code, report: JSON.parse(stdout) as Report, stderr };
}

interface Report {
  readonly tuned: boolean;
  readonly change: readonly string[];
  readonly settings: readonly { readonly settings: readonly string[]; readonly state: string }[];
  readonly limits: Readonly<Record<string, number>>;
  readonly server: Readonly<Record<string, number>>;
  readonly runs: Readonly<Record<string, number>>;
}

function stated({ settings }: Report, state: string): readonly string[] {
  return settings.filter((one) => one.state === state).flatMap((one) => one.settings);
}

const names = DEFAULTS.map((line) => line.slice(0, line.indexOf('=')));

test(
  'bench finds the settings of a tuned server set, measures runs, and leaves nothing behind',
  async () => {
    const { code, report, stderr } = await measured([]);
    // The poll rates are judged by time, which a busy machine lengthens.
    expect(report.change.filter((line) => !/PollRPS|PollHostRPS/.test(line))).toEqual([]);
    const isTuned = report.change.length === 0;
    expect([code, report.tuned]).toEqual([isTuned ? 0 : 1, isTuned]);
    expect(stated(report, 'set').toSorted()).toEqual(names.toSorted());
    expect(stderr).toContain('Checking settings (1 of 7): matching.');
    expect(report.limits).toMatchObject({ blobSizeLimitError: 2_097_152 });
    const figures = [...Object.values(report.server), ...Object.values(report.runs)];
    expect(figures).toHaveLength(7);
    expect(figures.every((figure) => figure > 0)).toBe(true);
    const left = (await readdir(tmpdir())).filter((name) => name.startsWith('perdure-bench-home-'));
    expect(left).toEqual([]);
  },
  LIMIT_MS,
);

test(
  'bench names every setting that an untuned server lacks, and exits with 1',
  async () => {
    const { code, report } = await measured(DEFAULTS);
    expect([code, report.tuned]).toEqual([1, false]);
    const lines = report.change.map((line) => line.slice(0, line.indexOf(':')));
    expect(lines).toEqual(expect.arrayContaining(names));
    expect(report.change).toContain(
      `history.maxInFlightUpdates: ${DYNAMIC_CONFIG['history.maxInFlightUpdates']}`,
    );
  },
  LIMIT_MS,
);

test('a late delivery counts only if writes are fast', () => {
  const figures = { roundTripMs: 1, bareStepMs: 100 };
  expect(checkDelivery({ ...figures, writeMs: 5, dispatchMs: 40 }).state).toBe('differs');
  expect(checkDelivery({ ...figures, writeMs: 60, dispatchMs: 90 }).state).toBe('unknown');
  expect(checkDelivery({ ...figures, writeMs: 5, dispatchMs: 6 }).state).toBe('unknown');
});

test('bench refuses a time in which nothing can be found out', async () => {
  const attempt = runInProcess(bench, { seconds: 1 }, { home: tmpdir() });
  await expect(attempt).rejects.toThrow('--seconds: expected at least 5, got 1');
});
