/** A turn of a run, or a part of one, as a response of OpenAI's API. Its id says all, so no table is needed. */
export interface ResponsePlace {
  readonly run: string;
  readonly turn: number;
  /**
   * The number of the last request that the client has answered in the turn, such as 2 for `r2`: the
   * response continues after it. Absent: the response begins with the turn.
   */
  readonly after?: number;
  /** The client has asked for it with `background: true`, which no run records. */
  readonly isBackground?: true;
}

export function responseId({ run, turn, after, isBackground }: ResponsePlace): string {
  const part = after === undefined ? '' : `r${after}`;
  return `resp_${turn}${part}${isBackground ? 'b' : ''}_${Buffer.from(run).toString('base64url')}`;
}

/** Returns the place that an id names; null if it is none. */
export function readResponseId(id: string): ResponsePlace | null {
  const pattern = /^resp_([1-9]\d{0,8})(?:r([1-9]\d{0,8}))?(b)?_([\w-]{1,4000})$/;
  const [, turn, after, background, run] = pattern.exec(id) ?? [];
  if (turn === undefined || run === undefined) return null;
  return {
    run: Buffer.from(run, 'base64url').toString(),
    turn: Number(turn),
    ...(after !== undefined && { after: Number(after) }),
    ...(background !== undefined && { isBackground: true }),
  };
}

/** A call that the client executes: the run, and the id that the call has there. */
interface CallPlace {
  readonly run: string;
  readonly call: string;
}

/** Returns the id of a call for a client, which sends it back with the result. */
export function clientCallId({ run, call }: CallPlace): string {
  return `${call}_${Buffer.from(run).toString('base64url')}`;
}

/** Returns the call that an id names; null if it is none. */
export function readClientCallId(id: string): CallPlace | null {
  const [, call, run] =
    /^(call_(?:f\d{1,9}_)?\d{1,9}_\d{1,9}_\d{1,9})_([\w-]{1,4000})$/.exec(id) ?? [];
  if (call === undefined || run === undefined) return null;
  return { run: Buffer.from(run, 'base64url').toString(), call };
}

/** Returns the turn of a call of a run, by its id; 0 for another id. */
export function turnOfCall(call: string): number {
  const [, turn] = /^call_(?:f\d{1,9}_)?(\d{1,9})_\d{1,9}_\d{1,9}$/.exec(call) ?? [];
  return Number(turn ?? 0);
}
