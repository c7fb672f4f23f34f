import type { ToolBlock } from '../blocked.js';
import type { Outcome } from '../outcome.js';
import type { ContextFields } from './turn-context.js';

/** Input of `retrieve`. It names the prompt as a model call does. */
export interface RetrieveInput extends ContextFields {
  readonly upTo: number;
  readonly head: string;
  readonly definition: string;
  readonly turn: number;
  /** How many of the newest messages of the prompt are the subject of the turn. */
  readonly asked: number;
  /** Why the run is blocked, if this is a probe. */
  readonly blocked?: ToolBlock;
}

/** Input of `remember`. It names the prompt as a model call does. */
export interface RememberInput extends Omit<RetrieveInput, 'asked' | 'blocked'> {
  /** How many of the newest messages of the prompt are of the turn. */
  readonly own: number;
  readonly outcome: Outcome;
  /** The same for each attempt, also after a reset: a store that has seen it drops the turn. */
  readonly key: string;
}
