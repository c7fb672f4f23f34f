import type { AgentCatalog } from '../agents/catalog.js';
import type { Archive } from '../storage/archive.js';
import type { BlobStore } from '../storage/blob-store.js';
import type { SegmentSize } from '../core/state.js';
import type { LiveHub } from '../live/hub.js';
import type { McpSessions } from '../mcp/sessions.js';
import type { ModelCatalog } from '../models/catalog.js';
import type { DefinitionCache } from './definitions.js';
import type { TranscriptCache } from './model/transcript-cache.js';

/** What the activities need of their worker. */
export interface ActivityDependencies {
  readonly agents: AgentCatalog;
  readonly models: ModelCatalog;
  readonly blobs: BlobStore;
  readonly archive: Archive;
  readonly transcripts: TranscriptCache;
  readonly definitions: DefinitionCache;
  readonly mcp: McpSessions;
  /** Absent: the engine's own. */
  readonly segment?: SegmentSize;
  /** Heartbeat timeout of model calls and retrievals in ms; absent: the default. */
  readonly heartbeatMs?: number;
  /** Names of the search attributes that the namespace has; looked up once. */
  readonly searchAttributes: () => Promise<readonly string[]>;
  /** Where replies are told while they come; absent: nowhere. */
  readonly live?: LiveHub;
  /** Aborts when the worker begins to shut down. */
  readonly stopping: AbortSignal;
}
