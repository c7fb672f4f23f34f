import type { AgentDefinition } from '../definition/definition.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import { formatDuration } from '../text/text.js';
import { type BlobRef, type ToolCall, parseCallId } from '../transcript/messages.js';
import type { ExecutedCall } from '../transcript/request.js';
import { callSummary } from './summaries.js';
import { UNDO } from './work.js';

/** A call that can be undone, or whose undo was attempted. */
export interface Undoable {
  /** The call's id. */
  readonly call: string;
  readonly tool: string;
  /** For people. */
  readonly shown: string;
  /** Unix time in ms after which it can no longer be undone. */
  readonly until: number;
  /** Absent until an undo is requested. */
  readonly state?: UndoState;
  /** For `failed` and `denied`: why. */
  readonly message?: string;
  /** The id of the open request for whose decision the undo waits; absent if it waits for none. */
  readonly request?: string;
}

/** How far the undoing of a call is; `denied`: a person or a rule refused it. */
export type UndoState = 'undoing' | 'undone' | 'failed' | 'denied';

/** The data that a run keeps of a call that can be undone. */
export interface KeptCall {
  readonly call: ToolCall;
  readonly turn: number;
  readonly step: number;
  /** The call's idempotency key. */
  readonly key: string;
  /** The call's result. */
  readonly text: string;
  readonly blob?: BlobRef;
  /** Unix time in ms. */
  readonly until: number;
  readonly state?: UndoState;
  readonly message?: string;
  /** When a node of a graph executed it, for people: the id of such a call does not say so. */
  readonly executed?: ExecutedCall;
}

/** The part of a run's state that holds these calls. */
interface Keeper {
  readonly kept?: readonly KeptCall[];
}

/** Number of newest calls that can be undone and are passed from segment to segment. */
const KEPT_CALLS = 20;
const KEPT_CHARACTERS = 128 * 1024;

/** Returns the list with one more call; the oldest are dropped. */
export function withKept(
  kept: readonly KeptCall[] | undefined,
  call: KeptCall,
): readonly KeptCall[] {
  const all = [...(kept ?? []), call].slice(-KEPT_CALLS);
  let characters = 0;
  const from = all.findLastIndex((one) => {
    // What is for people only may not change which calls are dropped.
    characters += JSON.stringify({ ...one, executed: undefined }).length;
    return characters > KEPT_CHARACTERS;
  });
  return all.slice(from + 1);
}

/** Returns the data to keep of a successful call; null if its tool cannot undo it. */
export function keptOf(
  tool: Pick<ToolDefinition, 'undoMs'>,
  made: Omit<KeptCall, 'until'> & { readonly at: number },
): KeptCall | null {
  const { undoMs } = tool;
  if (undoMs === undefined) return null;
  const { at, ...kept } = made;
  return { ...kept, until: at + undoMs };
}

/** Returns a call with when it was executed, unless its id, and the message with its result, say so. */
export function withExecuted(kept: KeptCall, executed: ExecutedCall): KeptCall {
  return parseCallId(kept.call).turn > 0 ? kept : { ...kept, executed };
}

/** Returns the list with the result of an undo. */
export function withUndoState(
  kept: readonly KeptCall[] | undefined,
  id: string,
  change: Pick<KeptCall, 'state' | 'message'>,
): readonly KeptCall[] {
  return (kept ?? []).map((one) => (one.call.id === id ? { ...one, ...change } : one));
}

/** Returns the calls for people, newest last. */
export function undoableCalls({ kept = [] }: Keeper): readonly Undoable[] {
  return kept.map(({ call, until, state, message }) => ({
    call: call.id,
    tool: call.name,
    shown: callSummary(call),
    until,
    ...(state && { state }),
    ...(message !== undefined && { message }),
  }));
}

/**
 * Returns the call that an update asks to undo: the one it names, or the last one that can be
 * undone. An action of a plan may be named by its own id, if no other plan of the run has that one.
 */
export function callToUndo(
  { kept = [] }: Keeper,
  id: string | undefined,
  now: number,
): KeptCall | undefined {
  if (id !== undefined) {
    const exact = kept.find(({ call }) => call.id === id);
    const actions = kept.filter(({ call }) => call.id.endsWith(`.${id}`));
    return exact ?? (actions.length === 1 ? actions[0] : undefined);
  }
  return kept.findLast(({ state, until }) => state === undefined && until > now);
}

/** The part of a run's state that has the requests of its undos. */
interface HasUndos {
  readonly work: readonly { readonly name: string; readonly request?: { readonly id: string } }[];
}

/** The part of a run's state that has the tools of its agent. */
interface HasTools {
  readonly config: { readonly definition: Pick<AgentDefinition, 'tools'> };
}

/**
 * Returns why no worker can undo a call, or null: a newer form of the agent may lack the call's
 * tool.
 */
export function undoFault({ config }: HasTools, { name }: Pick<ToolCall, 'name'>): string | null {
  const tool = config.definition.tools.find((one) => one.name === name);
  if (tool === undefined) return `the agent no longer has tool "${name}"`;
  return tool.undoMs === undefined ? `the tool "${name}" can no longer undo` : null;
}

/**
 * Returns why a call cannot be undone, or null. An undo that names no call is refused while another one is
 * open: a caller who repeats it would undo an earlier call. `now`: Unix time in ms.
 */
export function undoProblem(
  state: Keeper & HasTools & HasUndos,
  id: unknown,
  now: number,
): string | null {
  if (id !== undefined && typeof id !== 'string') return 'call: expected the id of a call';
  const { kept = [] } = state;
  const open = kept.filter((one) => one.state === undefined && one.until > now);
  const others = open.map(({ call }) => call.id).join(', ');
  if (id === undefined) {
    const undoing = kept.findLast((one) => one.state === 'undoing');
    const more = others === '' ? '' : `; to undo another call, name it: ${others}`;
    if (undoing !== undefined) return `call: ${undoingText(state, undoing)}${more}`;
  }
  const found = callToUndo(state, id, now);
  if (found === undefined) {
    if (id === undefined) return 'call: nothing can be undone';
    const known = open.length === 0 ? 'nothing can be undone' : `undoable: ${others}`;
    return `call: ${JSON.stringify(id)} cannot be undone; ${known}`;
  }
  if (found.state === 'undoing') return `call: ${undoingText(state, found)}`;
  if (found.state === 'undone') return `call: ${found.call.id} is undone already`;
  if (found.until <= now) {
    const agoMs = now - found.until;
    return `call: the time to undo ${found.call.id} ended ${formatDuration(agoMs, { as: 'rounded' })} ago`;
  }
  const fault = undoFault(state, found.call);
  return fault === null ? null : `call: ${found.call.id} cannot be undone; ${fault}`;
}

/** Returns how far an undo is that has begun. */
function undoingText({ work }: HasUndos, { call: { id } }: KeptCall): string {
  const request = work.find(({ name }) => name === `${UNDO}${id}`)?.request;
  return request === undefined
    ? `${id} is being undone`
    : `the undo of ${id} waits for a decision about request ${request.id}`;
}
