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
  /** Places in the prompt of what was said in the turn. */
  readonly own: Places;
  /** Why the run is blocked, if this is a probe. */
  readonly blocked?: ToolBlock;
}

/** Input of `remember`. It names the prompt as a model call does. */
export interface RememberInput extends Omit<RetrieveInput, 'blocked'> {
  readonly outcome: Outcome;
  /** The same for each attempt, also after a reset: the newest call replaces what a store has under it. */
  readonly key: string;
}
