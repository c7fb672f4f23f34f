import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { RawEvent } from '../../src/history/history-event.js';
import { isObject } from '../../src/core/text/json.js';
import { openingMessage, type Script } from '../conversation.js';
import type { Bench, BenchWorker } from '../kit/bench.js';

/** One of the programs that are compared, ready to run. */
export interface Side {
  readonly name: string;
  readonly worker: BenchWorker;
  /** Starts a run and returns its workflow id. */
  start(script: Script): Promise<string>;
  /** Starts another worker of the same program on the same queue. */
  second(): Promise<BenchWorker>;
  /** The same program on a queue of its own. */
  fresh(): Promise<Side>;
}

const PEER_WORKER = new URL('./worker.js', import.meta.url);
/** perdure as it is shipped: the engine decides when a segment ends. */
const AS_SHIPPED = { SEGMENTS: 'default' };

/** Starts a worker for each side. All have the same server, stub, and worker settings. */
export async function startSides(bench: Bench): Promise<readonly Side[]> {
  const hand = (name: string, workflow: string): Promise<Side> =>
    sideOf(bench, { name, kind: 'bare', env: {}, workflow, input: { model: 'http' } });
  const sides = [
    await startPerdure(bench),
    await startPerdure(bench, 'perdure, inline reads', 'inline-http'),
    await hand('bare loop (floor)', 'bareLoop'),
    await hand('loop that resends', 'resendLoop'),
  ];
  for (const name of ['openai-agents', 'ai-sdk']) {
    const label = `@temporalio/${name} ${versionOf(`@temporalio/${name}`)}`;
    sides.push(
      await sideOf(bench, {
        name: label,
        kind: PEER_WORKER,
        env: { PEER: name },
        workflow: null,
        input: {},
      }),
    );
  }
  return sides;
}

/** perdure, of whose agents one takes part. */
export async function startPerdure(bench: Bench, name = 'perdure', agent = 'http'): Promise<Side> {
  const input = { agent };
  return await sideOf(bench, { name, kind: 'perdure', env: AS_SHIPPED, workflow: 'agent', input });
}

interface Program {
  readonly name: string;
  readonly kind: 'perdure' | 'bare' | URL;
  readonly env: Readonly<Record<string, string>>;
  /** The workflow that this process starts; null if the worker's own client does. */
  readonly workflow: string | null;
  readonly input: object;
}

async function sideOf(bench: Bench, program: Program): Promise<Side> {
  const { name, kind, env, workflow, input } = program;
  const worker = await bench.worker(kind, env);
  const taskQueue = worker.queue;
  return {
    name,
    worker,
    async start(script) {
      const workflowId = randomUUID();
      const given = { ...input, message: openingMessage(script) };
      if (workflow === null) {
        const question = { start: { workflowId, input: given } };
        await worker.ask(question, `started ${workflowId}`);
      } else {
        await bench.client.workflow.start(workflow, { taskQueue, workflowId, args: [given] });
      }
      return workflowId;
    },
    fresh: () => sideOf(bench, program),
    second: () => bench.worker(kind, { ...env, QUEUE: taskQueue }),
  };
}

/** The installed version of a package. */
export function versionOf(name: string): string {
  const path = new URL(`./node_modules/${name}/package.json`, import.meta.url);
  const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
  return isObject(manifest) ? String(manifest['version']) : 'unknown';
}

/** The events and the bytes of a run in all its segments. */
export async function wholeHistory(
  { client }: Bench,
  workflowId: string,
): Promise<{ readonly events: readonly RawEvent[]; readonly bytes: number }> {
  const events: RawEvent[] = [];
  let bytes = 0;
  const newest = await client.workflow.getHandle(workflowId).fetchHistory();
  const first = newest.events?.[0]?.workflowExecutionStartedEventAttributes;
  for (let runId = first?.firstExecutionRunId; runId;) {
    const handle = client.workflow.getHandle(workflowId, runId);
    const segment: readonly RawEvent[] = (await handle.fetchHistory()).events ?? [];
    bytes += (await handle.describe()).historySize ?? Number.NaN;
    events.push(...segment);
    runId = segment.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return { events, bytes };
}
