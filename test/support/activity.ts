import { asyncLocalStorage, type Context } from '@temporalio/activity';
import { noopMetricMeter } from '@temporalio/common';
import type { ActivityDependencies, PinnedAgent } from '../../src/activities/activity-context.js';
import type { AgentDefinition } from '../../src/core/definition/definition.js';
import type { ToolDefinition } from '../../src/core/definition/tool-definition.js';
import { sha256Hex, canonicalJson, type JsonObject } from '../../src/core/text/json.js';
import type { ToolCall } from '../../src/core/transcript/messages.js';
import type { BlobStore } from '../../src/storage/blob-store.js';
import { createToolRegistry, toToolDefinition, type Tool } from '../../src/tools/tool.js';
import { config } from './scripts.js';

interface FakeInfo {
  readonly attempt?: number;
  readonly signal?: AbortSignal;
}

/** Returns the context of an activity that runs without a server. */
export function activityContext({ attempt = 1, signal }: FakeInfo = {}): Context {
  const log = { info: () => undefined, warn: () => undefined };
  const info = {
    attempt,
    namespace: 'default',
    workflowExecution: { workflowId: 'run-1', runId: 'segment-1' },
    currentAttemptScheduledTimestampMs: Date.now(),
  };
  const cancellationSignal = signal ?? new AbortController().signal;
  const rest = { cancellationSignal, metricMeter: noopMetricMeter, heartbeat: () => undefined };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the part that activities use
  return { info, log, ...rest } as unknown as Context;
}

/** Runs an activity without a server. */
export async function inActivity<T>(work: () => Promise<T>, info: FakeInfo = {}): Promise<T> {
  return await asyncLocalStorage.run(activityContext(info), work);
}

export function memoryBlobs(): BlobStore {
  const texts = new Map<string, string>();
  return {
    async put(text) {
      const sha256 = sha256Hex(text);
      texts.set(sha256, text);
      return { sha256, bytes: Buffer.byteLength(text) };
    },
    get: async ({ sha256 }) => texts.get(sha256) ?? '',
  };
}

interface FakeAgent {
  /** The tools that the run has pinned; default: those of the worker. */
  readonly pinned?: readonly ToolDefinition[];
  readonly definition?: Partial<AgentDefinition>;
}

/** Returns an agent of a run, on a worker that has these tools. */
export function pinnedAgent(tools: readonly Tool[], given: FakeAgent = {}): PinnedAgent {
  const { pinned = tools.map((tool) => toToolDefinition(tool)) } = given;
  const { definition } = config({ tools: pinned, ...given.definition });
  const isCurrent = given.pinned === undefined;
  return { definition, tools: createToolRegistry(tools), agent: undefined, current: isCurrent };
}

/** Returns the worker's dependencies of activities for decisions and calls. */
export function workerDeps(
  agent: PinnedAgent,
  requests: Partial<ActivityDependencies['requests']> = {},
): ActivityDependencies {
  const deps = {
    definitions: { find: async () => agent, add: () => undefined },
    transcripts: { noteResult: () => undefined, hasReply: () => true },
    blobs: memoryBlobs(),
    requests: { rules: [], ...requests },
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the part that these activities use
  return deps as unknown as ActivityDependencies;
}

export function toolCall(name: string, value: JsonObject, rest: Partial<ToolCall> = {}): ToolCall {
  const text = canonicalJson(value);
  return { id: 'call_1_1_0', name, arguments: text, digest: sha256Hex(text), ...rest };
}
