import type { Archive } from './archive.js';
import type { BlobStore } from './blob-store.js';
import type { ToolLock } from './tool-lock.js';

/**
 * Where large texts, the histories of deleted runs, and the accepted forms of MCP tools are stored.
 */
export interface Stores {
  readonly blobs: BlobStore;
  readonly archive: Archive;
  /** Absent: files in PERDURE_HOME. */
  readonly toolLock?: ToolLock;
}
