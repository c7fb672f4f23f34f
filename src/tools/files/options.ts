import type { NameGuard } from './name-guard.js';

/** The settings that all file tools of one root share. */
export interface FileToolSettings {
  /** Absolute path of the folder that the tools are confined to. */
  readonly root: string;
  /** The size in bytes of the largest file that is searched, counted to its end, or written. */
  readonly maxFileBytes: number;
  /** Names of folders that are entered only if `path` names them, and never written to. */
  readonly skip: ReadonlySet<string>;
  readonly guard: NameGuard;
}
