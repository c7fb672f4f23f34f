import type { NameGuard } from './name-guard.js';

/** What all file tools of one root share. */
export interface FileToolSettings {
  /** Absolute path of the folder that the tools are confined to. */
  readonly root: string;
  /** Bytes of a file up to which it is searched, counted to its end, and written. */
  readonly maxFileBytes: number;
  /** Names of folders that are not entered unless they are named, and never written to. */
  readonly skip: ReadonlySet<string>;
  readonly guard: NameGuard;
}
