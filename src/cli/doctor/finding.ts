import type { JsonObject } from '../../core/text/json.js';
import type { ServerHandle } from '../../server/server-settings.js';

/** The result of one check of `doctor`. */
export interface Finding {
  readonly name: string;
  /**
   * `problem`: perdure cannot work. `note`: it can work, but this is worth knowing. `skipped`: this
   * was not checked, so it may be wrong.
   */
  readonly level: 'ok' | 'note' | 'problem' | 'skipped';
  /** The result as text. */
  readonly text: string;
  /** What to do, or the command to run; absent if nothing needs to be done. */
  readonly fix?: string;
  /** The result as data. Never holds a key. */
  readonly data: JsonObject;
}

/** The server, the credentials, the task queue, and the agents that `doctor` checks. */
export interface CheckTarget {
  readonly server: ServerHandle;
  readonly env: NodeJS.ProcessEnv;
  readonly taskQueue: string;
  /** The names of the agents of the configuration. */
  readonly agents: readonly string[];
  /** The same, and the names of those that they call. */
  readonly known: readonly string[];
  /** Whether this is the built-in configuration: the user has none. */
  readonly isBuiltIn: boolean;
  /** The agents with a retention of their own, in ms. */
  readonly retained: readonly { readonly name: string; readonly retentionMs: number }[];
  /** Whether the configuration has budgets or principals of tenants. */
  readonly hasTenants: boolean;
  /** Returns the command that starts a worker on a task queue: of this configuration, or of another one. */
  readonly workerCommand: (taskQueue: string, isOwn: boolean) => string;
}
