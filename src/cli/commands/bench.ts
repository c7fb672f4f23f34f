import { setMaxListeners } from 'node:events';
import { Connection } from '@temporalio/client';
import { missingSearchAttributes } from '../../server/namespace.js';
import { type ServerHandle, DYNAMIC_CONFIG } from '../../server/server-settings.js';
import { connectionTarget } from '../../temporal/connection.js';
import {
  type BareFigures,
  type RunFigures,
  RUNS,
  measureBare,
  measureRuns,
} from '../bench/measure.js';
import type { ProbePlace } from '../bench/probe.js';
import {
  CHECKS,
  type CheckedSetting,
  UNSEEN,
  checkDelivery,
  checkSetting,
} from '../bench/settings.js';
import { type CliContext, type Command, EXIT, UsageError } from '../context.js';
import { columns, formatCount } from '../format/format.js';
import { catchInterrupt, connectionEnv } from '../hosting/hosting.js';
import { noteServer } from '../hosting/server-notes.js';
import { withOptions } from '../input/options.js';
import { runnableText } from '../reports/next-command.js';

interface BenchOptions {
  readonly seconds?: number;
}

const [DEFAULT_SECONDS, LEAST_SECONDS] = [60, 5];

const ABOUT =
  '\nMost settings are found out by effect, whatever the load: see docker/dynamicconfig/perdure.yaml. Times are measured beside them,\n' +
  'with a model that costs nothing and a worker of its own, and never decide alone. What it starts is called perdure-bench-…, and is\n' +
  'deleted. Exit code: 0 if no setting has to be changed, 1 if one has, or if the time was not enough to find out.';

/** The figures of docs/benchmarks.md, of two cores with worker and server. */
const PUBLISHED = { stepMs: 17, stepsPerSecond: 109, cpuMsPerStep: 8 } as const;
/** The addresses of Temporal Cloud. There, one setting is the user's. */
const CLOUD = /\.(?:tmprl\.cloud|api\.temporal\.io):\d+$/;
const OF_CLOUD = ['matching.enableFairness'];

/** What was found out. Absent parts were not reached in time. */
interface Found {
  readonly settings: CheckedSetting[];
  limits?: Readonly<Record<string, number>>;
  missingSearchAttributes?: readonly string[];
  server?: BareFigures;
  runs?: RunFigures;
}

/** `bench`: measures the server in use, and says which of its settings to change. */
export const bench: Command<BenchOptions> = {
  declare: (entry) => withOptions(entry, 'seconds').addHelpText('after', ABOUT),
  async run(context, { seconds = DEFAULT_SECONDS }) {
    if (!(seconds >= LEAST_SECONDS)) {
      throw new UsageError(`--seconds: expected at least ${LEAST_SECONDS}, got ${seconds}`);
    }
    const interrupt = catchInterrupt();
    const timeout = AbortSignal.timeout(seconds * 1_000);
    const signal = AbortSignal.any([interrupt, timeout]);
    // A check makes more than ten calls at once.
    setMaxListeners(0, signal);
    const server = await context.server();
    noteServer(context, server);
    const found: Found = { settings: [] };
    try {
      await lookInto(context, { server, signal, found });
    } catch (error) {
      if (interrupt.aborted) return EXIT.interrupted;
      if (!timeout.aborted) throw error;
    }
    if (interrupt.aborted) return EXIT.interrupted;
    const concluded = conclude(found, server, seconds);
    const advice = concluded.advice.map((text) => runnableText(context, text));
    const report = { ...concluded, advice };
    if (context.options.json) context.out(JSON.stringify(report));
    else for (const line of linesOf(found, report)) context.out(line);
    context.note(report.conclusion);
    return report.tuned ? EXIT.completed : EXIT.failed;
  },
};

async function lookInto(
  context: CliContext,
  { server, signal, found }: { server: ServerHandle; signal: AbortSignal; found: Found },
): Promise<void> {
  const { address, namespace } = server;
  const env = connectionEnv(context.env, server);
  // Without the SDK's interceptor, which repeats what the server refuses.
  const { options } = connectionTarget({ address, namespace }, env);
  const connection = await Connection.connect({ ...options, interceptors: [] });
  const place: ProbePlace = { connection, namespace, signal };
  try {
    for (const [index, check] of CHECKS.entries()) {
      context.note(`Checking settings (${index + 1} of ${CHECKS.length}): ${check.settings[0]} …`);
      found.settings.push(await checkSetting(check, place));
    }
    const { namespaceInfo } = await connection.workflowService.describeNamespace({ namespace });
    found.limits = limitsOf(namespaceInfo?.limits ?? {});
    found.missingSearchAttributes = await missingSearchAttributes(connection, namespace).catch(
      () => [],
    );
    context.note('Measuring the server without a worker …');
    found.server = await measureBare(place);
    found.settings.push(checkDelivery(found.server), UNSEEN);
    context.note(`Measuring runs, one at a time and ${RUNS} at once …`);
    found.runs = await measureRuns(place, server, env);
  } finally {
    await connection.close();
  }
}

/** The limits that the namespace reports, as numbers. */
function limitsOf(limits: object): Readonly<Record<string, number>> {
  const all = Object.entries(limits).map(([name, value]) => [name, Number(value)] as const);
  return Object.fromEntries(all.filter(([, value]) => Number.isFinite(value) && value > 0));
}

interface Report extends Found {
  /** Whether every check was made, and no setting has to be changed. */
  readonly tuned: boolean;
  readonly address: string;
  readonly version: string | null;
  /** The lines of the dynamic configuration that are missing. */
  readonly change: readonly string[];
  readonly advice: readonly string[];
  readonly published: typeof PUBLISHED;
  readonly conclusion: string;
}

function conclude(found: Found, { address, version }: ServerHandle, seconds: number): Report {
  const isCloud = CLOUD.test(address);
  const differing = found.settings
    .filter(({ state }) => state === 'differs')
    .flatMap(({ settings }) => settings)
    .filter((name) => !isCloud || OF_CLOUD.includes(name));
  const isComplete = found.settings.length >= CHECKS.length;
  const where = isCloud
    ? 'turn it on for the namespace in Temporal Cloud'
    : 'set what is listed in the dynamic configuration of the server (docker/dynamicconfig/perdure.yaml has all of it)';
  const conclusion =
    differing.length > 0
      ? `The server is not tuned: ${formatCount(differing.length, 'setting')} to change; ${where}.`
      : isComplete
        ? 'No setting of the server has to be changed.'
        : `Not known: ${seconds} s were not enough for all checks; use a higher --seconds.`;
  return {
    tuned: differing.length === 0 && isComplete,
    address,
    version,
    ...found,
    change: differing.map((name) => `${name}: ${String(DYNAMIC_CONFIG[name])}`),
    advice: [...adviceAbout(found)],
    published: PUBLISHED,
    conclusion,
  };
}

/** A call on one machine takes 1 to 2 ms, and a write of a database that is not busy about 5 ms. */
const [FAR_MS, SLOW_WRITE_MS] = [10, 25];
/** A worker has one thread for activities, and others for workflow code. */
const BUSY_CORES = 0.8;

/** Says what the times mean. They vary with the load, so no verdict follows from them. */
function* adviceAbout({ server, runs, missingSearchAttributes: missing = [] }: Found) {
  if (missing.length > 0)
    yield `Search attributes are missing (${missing.join(', ')}): \`perdure doctor\` has the command that adds them.`;
  if (server === undefined) return;
  const { roundTripMs, writeMs } = server;
  if (roundTripMs > FAR_MS)
    yield `A call takes ${ms(roundTripMs)} before the server does anything: run workers closer to it; a step makes eight calls, one after the other.`;
  if (writeMs > SLOW_WRITE_MS + roundTripMs)
    yield `A write takes ${ms(writeMs)}: look at the database (its disk, its processor), at \`persistence.maxQPS\`, and at how busy the machine is. No client can see limits of persistence or the sizes of caches.`;
  if (runs === undefined) return;
  const cores = (runs.cpuMsPerStep * runs.stepsPerSecond) / 1_000;
  const used = `With ${RUNS} runs at once, the worker used ${cores.toFixed(1)} processor cores`;
  yield cores > BUSY_CORES
    ? `${used}: more workers on other machines help if the server has room.`
    : `${used} and waited for the server most of the time.`;
}

function linesOf(found: Found, { change, advice, address, version }: Report): readonly string[] {
  const { server, runs, limits = {} } = found;
  const rows = found.settings.flatMap(({ settings, state, seen, why }) => [
    ...settings.map((name, index) => [WORD[state], name, index === 0 ? seen : 'the same']),
    ...(state === 'differs' ? [['', '', `→ ${why}`]] : []),
  ]);
  const published = ({ stepMs, stepsPerSecond, cpuMsPerStep }: typeof PUBLISHED) =>
    `published: ${stepMs} ms, ${stepsPerSecond} steps/s, ${cpuMsPerStep} ms of CPU`;
  return [
    `Server ${address}${version === null ? '' : `, Temporal ${version}`}`,
    ...columns(rows),
    ...(Object.keys(limits).length === 0
      ? []
      : [
          `limits in bytes: ${Object.entries(limits)
            .map(([name, value]) => `${name} ${value}`)
            .join(', ')}`,
        ]),
    ...(server === undefined
      ? []
      : [
          `server alone: call ${ms(server.roundTripMs)}, write ${ms(server.writeMs)}, delivery of a task ${ms(server.dispatchMs)}, step of two activities ${ms(server.bareStepMs)}`,
        ]),
    ...(runs === undefined
      ? server === undefined
        ? []
        : ['runs: not measured in this time']
      : [
          `perdure: ${ms(runs.stepMs)} per step; ${runs.stepsPerSecond.toFixed(1)} steps/s and ${ms(runs.cpuMsPerStep)} of CPU of the worker per step with ${RUNS} runs at once (${published(PUBLISHED)})`,
        ]),
    ...advice,
    ...(change.length === 0 ? [] : ['to change:', ...change.map((line) => `  ${line}`)]),
  ];
}

const WORD = { set: 'ok', differs: 'change', unknown: 'unknown' } as const;

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
