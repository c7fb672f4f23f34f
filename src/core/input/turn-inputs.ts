import type { ToolBlock } from '../blocked.js';
import type { Outcome } from '../outcome.js';
import type { Places } from '../turn.js';
import type { ContextFields } from './turn-context.js';

/** Input of `retrieve`. It names the prompt as a model call does. */
export interface RetrieveInput extends ContextFields {
  readonly upTo: number;
  readonly head: string;
  readonly definition: string;
  readonly turn: number;
  /** Prompt places of the turn's messages. */
  readonly own: Places;
  /** Why the run is blocked, if this is a probe. */
  readonly blocked?: ToolBlock;
}

/** Input of `remember`. It names the prompt as a model call does. */
export interface RememberInput extends Omit<RetrieveInput, 'blocked'> {
  readonly outcome: Outcome;
  /**
   * The same for each attempt, even after a reset: the newest call replaces the entry that a store
   * has for the key.
   */
  readonly key: string;
}
