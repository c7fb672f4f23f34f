import type { JsonObject } from '../../core/json.js';

/** One thing that `doctor` has looked at. */
export interface Finding {
  readonly name: string;
  /** `problem`: perdure cannot work like this. `note`: it can, and this is worth knowing. */
  readonly level: 'ok' | 'note' | 'problem';
  /** For people. */
  readonly text: string;
  /** What to do or to type; absent where nothing needs to be done. */
  readonly cure?: string;
  /** The same for programs. Never a key. */
  readonly data: JsonObject;
}
