import type { AgentCatalog } from '../agents/catalog.js';
import type { MayDecide, NotifyFunction } from '../agents/requests.js';
import type { Rule } from '../core/requests/rules.js';
import type { Archive } from '../storage/archive.js';
import type { BlobStore } from '../storage/blob-store.js';
import type { ToolLock } from '../storage/tool-lock.js';
import type { SegmentSize } from '../core/state.js';
import type { LiveHub } from '../live/hub.js';
import type { McpSessions } from '../mcp/sessions.js';
import type { ModelCatalog } from '../models/model-catalog.js';
import type { DefinitionCache } from './definitions.js';
import type { TranscriptCache } from './model/transcript-cache.js';

/** The worker's settings for requests, in addition to the rules of agents and runs. */
export interface RequestDependencies {
  readonly rules: readonly Rule[];
  /** Absent: only the rules determine the deciders. */
  readonly mayDecide?: MayDecide;
  /** Absent: no notices are sent. */
  readonly notify?: NotifyFunction | Webhook;
}

/** An address for notices, with the key of their signatures. */
export interface Webhook {
  readonly url: string;
  readonly key: Uint8Array;
}

/** What the worker provides to its activities. */
export interface ActivityDependencies {
  readonly agents: AgentCatalog;
  readonly models: ModelCatalog;
  readonly blobs: BlobStore;
  readonly archive: Archive;
  readonly toolLock: ToolLock;
  readonly transcripts: TranscriptCache;
  readonly definitions: DefinitionCache;
  readonly mcp: McpSessions;
  /** Size of a segment of the history; absent: the default of the engine. */
  readonly segment?: SegmentSize;
  /** Heartbeat timeout of model calls and retrievals in ms; absent: the default. */
  readonly heartbeatMs?: number;
  /** Returns the names of the namespace's search attributes; they are looked up once. */
  readonly searchAttributes: () => Promise<readonly string[]>;
  /** Streams replies in progress to readers; absent: replies are not streamed. */
  readonly live?: LiveHub;
  /** The worker's settings for requests. */
  readonly requests: RequestDependencies;
  /** Whether spans contain message content; default false. */
  readonly captureContent?: boolean;
  /** Aborts when the worker begins to shut down. */
  readonly stopping: AbortSignal;
}
