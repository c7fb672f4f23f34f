import { randomUUID } from 'node:crypto';
import { Client } from '@temporalio/client';
import type { PerdureClient } from '../../src/client/client-types.js';
import { openClient } from '../../src/client/create-client.js';
import type { Request } from '../../src/core/transcript/request.js';
import { openingMessage } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';

const CALLERS = 128;
/** The server notices a killed worker after the workflow task timeout of 5 s; then another one replays the run. */
const EXTRA_MS = 7_000;

const KINDS = ['sends', 'decisions', 'limits'] as const;
type Kind = (typeof KINDS)[number];
/** All callers use one client, or each has its own. */
const CLIENTS = ['one client', 'own clients'] as const;

interface Setting {
  readonly kind: Kind;
  readonly clients: (typeof CLIENTS)[number];
  readonly isKilled: boolean;
}

/** What it took until all callers of one run had their answers. */
interface Answered {
  readonly tookMs: number;
  /** Callers that got an error instead of an answer. */
  readonly failed: number;
  readonly workflowTasks: number;
  readonly historyBytes: number;
  /** CPU time of the worker that served to the end. */
  readonly cpuMs: number;
}

/** Measures many callers of one run at once, with and without `kill -9` of its worker. */
export async function measureCallers(bench: Bench): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const clients of CLIENTS) {
    for (const kind of KINDS) rows.push(await measureKind(bench, { kind, clients }));
  }
  return rows;
}

async function measureKind(
  bench: Bench,
  { kind, clients }: Pick<Setting, 'kind' | 'clients'>,
): Promise<Row> {
  const quiet: Answered[] = [];
  const killed: Answered[] = [];
  for (let sample = 0; sample < (bench.quick ? 1 : 5); sample += 1) {
    quiet.push(await callAll(bench, { kind, clients, isKilled: false }));
    killed.push(await callAll(bench, { kind, clients, isKilled: true }));
  }
  const extra = killed.map(({ tookMs }, at) => tookMs - (quiet[at]?.tookMs ?? Number.NaN));
  return {
    name: `callers/${kind}, ${clients}`,
    what: `${CALLERS} ${kind} at once, ${clients}: longer by kill -9`,
    value: median(extra),
    unit: 'ms',
    bar: { atMost: EXTRA_MS },
    samples: extra,
    detail: `without ${described(quiet)}; with ${described(killed)}`,
  };
}

function described(answered: readonly Answered[]): string {
  const all = (of: (one: Answered) => number): string =>
    answered.map((one) => Math.round(of(one))).join('/');
  return [
    `${all(({ tookMs }) => tookMs)} ms`,
    `${all(({ failed }) => failed)} failed`,
    `${all(({ workflowTasks }) => workflowTasks)} tasks`,
    `${all(({ historyBytes }) => historyBytes / 1_000)} kB`,
    `${all(({ cpuMs }) => cpuMs)} ms CPU`,
  ].join(', ');
}

async function callAll(bench: Bench, { kind, clients, isKilled }: Setting): Promise<Answered> {
  const env = { QUEUE: `callers-${randomUUID()}` };
  const first = await bench.worker('perdure', env);
  const open = (client: Client): Promise<PerdureClient> =>
    openClient({ client, taskQueue: env.QUEUE });
  const shared = await open(bench.client);
  const { id } = await shared.start('scripted', { message: opening(), open: true, rules: ASK });
  const requests = await allAsked(shared, id);
  // A client sends only some updates at once; those of different clients know nothing of each other.
  const { connection } = bench.client;
  const own = await Promise.all(
    requests.map(async () =>
      clients === 'one client' ? shared : await open(new Client({ connection })),
    ),
  );
  const last = isKilled ? await bench.worker('perdure', env) : first;
  const before = await last.reading();
  const begun = performance.now();
  let isFirst = true;
  const answers = await Promise.allSettled(
    requests.map(async (request, at) => {
      await callOf(own[at] ?? shared, { kind, id, at, request });
      if (!isFirst || !isKilled) return;
      isFirst = false;
      await first.kill();
    }),
  );
  const tookMs = performance.now() - begun;
  const { cpuMs } = await last.reading();
  const handle = bench.client.workflow.getHandle(id);
  const { historySize = 0 } = await handle.describe();
  const { events } = await handle.fetchHistory();
  await handle.terminate();
  await Promise.all([first, last].map((worker) => worker.end()));
  return {
    tookMs,
    failed: answers.filter(({ status }) => status === 'rejected').length,
    workflowTasks: (events ?? []).filter((one) => one.workflowTaskStartedEventAttributes).length,
    historyBytes: historySize,
    cpuMs: cpuMs - before.cpuMs,
  };
}

const ASK = [{ tool: 'work', then: 'ask' }] as const;

function opening(): string {
  const tools = Array.from({ length: CALLERS }, () => 'work');
  return openingMessage({ name: 'callers', steps: 1, tools, bytes: 100 });
}

async function allAsked(client: PerdureClient, id: string): Promise<readonly Request[]> {
  for (;;) {
    const { pending } = await client.status(id);
    if (pending.length === CALLERS) return pending;
  }
}

async function callOf(
  client: PerdureClient,
  call: {
    readonly kind: Kind;
    readonly id: string;
    readonly at: number;
    readonly request: Request;
  },
): Promise<unknown> {
  const { kind, id, at, request } = call;
  if (kind === 'sends') return await client.send(id, { message: `message ${at}` });
  if (kind === 'limits') return await client.setLimits(id, { run: { steps: 1_000 + at } });
  return await client.resolve(id, { request: request.id, digest: request.digest, as: 'deny' });
}
