import type { AgentDefinition } from '../definition/definition.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import { type BlobRef, type Message, type ToolCall, parseCallId } from '../transcript/messages.js';
import type { ExecutedCall } from '../transcript/request.js';
import { callSummary } from './summaries.js';

/** A call that can be undone, or whose undo was attempted. */
export interface Undoable {
  /** The call's id. */
  readonly call: string;
  readonly tool: string;
  /** For people. */
  readonly shown: string;
  /** Unix time in ms after which it can no longer be undone. */
  readonly until: number;
  /** Absent until an undo is requested. `not_undone`: the run ended before the undo was executed. */
  readonly state?: UndoState | 'not_undone';
  /** For `failed`, `denied`, and `not_undone`: why. */
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
export interface Keeper {
  readonly kept?: readonly KeptCall[];
}

/** Number of newest calls that can be undone and are passed from segment to segment. */
const KEPT_CALLS = 20;
const KEPT_CHARACTERS = 128 * 1024;

/** Returns the list with one more call; the oldest are dropped, except those whose undo has not ended. */
export function withKept(
  kept: readonly KeptCall[] | undefined,
  call: KeptCall,
): readonly KeptCall[] {
  const all = [...(kept ?? []), call];
  const newest = new Set(newestOf(all));
  return all.filter((one) => newest.has(one) || one.state === 'undoing');
}

/** Returns the newest calls, as an earlier version kept them: also without one that is being undone. */
export function newestOf(calls: readonly KeptCall[]): readonly KeptCall[] {
  const all = calls.slice(-KEPT_CALLS);
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

const NOTE = '[a person has undone ';

/** Returns the note by which the model learns that a call was undone. */
export function undoNote(call: ToolCall): string {
  return `${NOTE}${call.id}: ${callSummary(call)}]`;
}

/** Whether a note says that this call was undone. */
export function isNoteAbout(note: string, id: string): boolean {
  return note.startsWith(`${NOTE}${id}: `);
}

/** Whether a message says that a call was undone. */
export function isUndoNote(message: Message): boolean {
  return message.role === 'user' && message.origin === 'perdure' && message.text.startsWith(NOTE);
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

/** The part of a run's state that has the tools of its agent. */
export interface HasTools {
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
