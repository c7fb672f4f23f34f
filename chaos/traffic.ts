import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { PerdureClient } from '../src/client/client-types.js';
import type { DurableEvent } from '../src/history/durable-steps.js';
import type { Outcome } from '../src/core/transcript/outcome.js';
import { integer, seeded, type Random } from './random.js';
import { RefusedError } from '../src/core/errors.js';

const LANES = 10;
/** How long a run may take to end after the last fault. */
const PATIENCE_MS = 180_000;

/**
 * The agents of the chaos run: two whose model calls tools, one whose function decides, one that
 * asks about every call with a side effect, a graph, one that plans, and one whose prompt is
 * summarized again and again.
 */
const AGENTS = [
  'chaos',
  'chaos',
  'chaos',
  'decider',
  'careful',
  'careful',
  'walker',
  'shrinker',
  'shrinker',
  'planner',
] as const;
export type AgentName = (typeof AGENTS)[number] | 'capped';

/** A run as its caller knows it: what was accepted, and how it ended. */
export interface ChaosRun {
  readonly number: number;
  readonly id: string;
  readonly agent: AgentName;
  readonly open: boolean;
  /** Texts of the messages that the run accepted. */
  readonly accepted: string[];
  readonly outcomes: Outcome[];
  isCancelled: boolean;
  /** What a person decided about a call, by its place: the place that it was allowed, or null. */
  readonly decided: Map<string, string | null>;
  /** What a reader saw that followed the run through all faults. */
  readonly followed: DurableEvent[];
  /** Why it did not end in the time that is left after the last fault. */
  fault: string | null;
  isOver: boolean;
}

/**
 * Starts runs and sends them messages until `signal` aborts, then waits until the open ones end.
 */
export async function traffic(
  client: PerdureClient,
  { seed, signal, runs }: { seed: number; signal: AbortSignal; runs: ChaosRun[] },
): Promise<void> {
  const random = seeded(seed + 2);
  const patience = new AbortController();
  // All waits of all lanes share this signal.
  setMaxListeners(0, patience.signal);
  // Waits end with this signal, so a stuck reader cannot delay the report.
  const tooLong = async (): Promise<void> => {
    await pause(PATIENCE_MS, undefined, { ref: false });
    patience.abort(new Error(`it did not end within ${PATIENCE_MS / 1_000} s of the last fault`));
  };
  signal.addEventListener('abort', () => void tooLong(), { once: true });
  const lane = async (): Promise<void> => {
    while (!signal.aborted) {
      const run = newRun(runs.length, random);
      runs.push(run);
      const place = { client, patience: patience.signal };
      const work = Promise.all([converse(place, run, random), follow(place, run)]);
      await within(work, patience.signal).catch((error: unknown) => {
        run.fault = `${String(error)}; ${run.outcomes.length} outcomes, ${lastSeen(run)}`;
      });
      run.isOver = true;
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/** Where a run is executed, and how long to wait for its end. */
interface Place {
  readonly client: PerdureClient;
  readonly patience: AbortSignal;
}

/** Rejects with the signal's reason if it aborts first, whatever the work does then. */
async function within(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const left = new AbortController();
  const late = new Promise<never>((_, reject) => {
    const give = (): void => reject(signal.reason as Error);
    if (signal.aborted) give();
    signal.addEventListener('abort', give, { once: true, signal: left.signal });
  });
  try {
    await Promise.race([work, late]);
  } finally {
    left.abort();
    work.catch(() => undefined);
  }
}

function lastSeen({ followed }: ChaosRun): string {
  const last = followed.at(-1);
  return `its reader saw ${followed.length} events, the last: ${last ? JSON.stringify(last) : 'none'}`;
}

function newRun(number: number, random: Random): ChaosRun {
  const open = random() < 0.35;
  return {
    number,
    id: `chaos-${number}`,
    agent:
      !open && random() < 0.1 ? 'capped' : (AGENTS[integer(random, 0, AGENTS.length)] ?? 'chaos'),
    open,
    decided: new Map(),
    accepted: [],
    outcomes: [],
    isCancelled: false,
    followed: [],
    fault: null,
    isOver: false,
  };
}

async function converse({ client, patience }: Place, run: ChaosRun, random: Random): Promise<void> {
  const text = (message: number): string =>
    `run ${run.number} message ${message} steps ${integer(random, 1, 5)} as ${run.agent}`;
  const first = text(0);
  const cancels = !run.open && random() < 0.1;
  await persist(patience, () => start(client, run, first));
  run.accepted.push(first);
  if (cancels) {
    await pause(integer(random, 0, 1_500));
    await persist(patience, () => client.cancel(run.id));
    run.isCancelled = true;
  }
  if (run.open) {
    for (let message = 1; message <= 3; message += 1) {
      await pause(integer(random, 0, 2_000));
      const sent = text(message);
      const id = `${run.id}-${message}`;
      await persist(patience, async () => {
        const { delivered } = await client.send(run.id, { id, message: sent });
        // A run that waits for an answer refuses a recorded message later. Repeated, it is taken once.
        if (!delivered) throw new Error(`message ${id} is recorded, and not taken yet`);
      });
      run.accepted.push(sent);
    }
    for (let turn = 1; turn <= 4; turn += 1) {
      const wait = { turn, signal: patience };
      run.outcomes.push(await persist(patience, () => client.result(run.id, wait)));
    }
    await persist(patience, () => client.close(run.id));
  }
  const end = await persist(patience, () => client.result(run.id, { signal: patience }));
  if (!run.open) run.outcomes.push(end);
}

/** If the response to a start was lost, the retry finds the run. */
async function start(client: PerdureClient, run: ChaosRun, message: string): Promise<void> {
  try {
    await client.start(run.agent, { id: run.id, message, open: run.open });
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'IdTakenError') throw error;
  }
}

/**
 * Follows the run's events over an unreliable connection: from the last one that the reader has
 * seen.
 */
async function follow({ client, patience }: Place, run: ChaosRun): Promise<void> {
  await persist(patience, async () => {
    const from = run.followed.at(-1)?.offset;
    const options = { signal: patience, ...(from !== undefined && { from }) };
    for await (const event of client.events(run.id, options)) {
      run.followed.push(event);
    }
    const last = run.followed.at(-1)?.type;
    if (last !== 'run-ended') throw new Error(`the events ended with ${last}`);
  });
}

/** Retries through every outage; a permanent rejection is thrown at once. */
async function persist<T>(patience: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isFinal = error instanceof RefusedError && /ended|closing/.test(error.message);
      if (isFinal || patience.aborted) throw error;
    }
    await pause(250);
  }
}
