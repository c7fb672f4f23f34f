import type { Archive } from './archive.js';
import type { BlobStore } from './blob-store.js';

/** Where large texts and the histories of deleted runs are stored. */
export interface Stores {
  readonly blobs: BlobStore;
  readonly archive: Archive;
}
