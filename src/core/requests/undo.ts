/** A call that can be undone, or of which the undo was tried. */
export interface Undoable {
  /** The call's id. */
  readonly call: string;
  readonly tool: string;
  /** For people. */
  readonly shown: string;
  /** Unix time in ms after which it can no longer be undone. */
  readonly until: number;
  /** Absent before anybody asked for it. */
  readonly state?: 'undoing' | 'undone' | 'failed' | 'denied';
  /** For `failed` and `denied`: why. */
  readonly message?: string;
}
