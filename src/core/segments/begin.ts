import { unloadedConfig } from '../definition/initial-config.js';
import type { RunInput } from '../input/input.js';
import { reduce } from '../reduce.js';
import { initialState, type RunState } from '../state.js';

/** The initial data of a run, as the server records it. */
export interface Beginning {
  readonly input: RunInput;
  /** Unix time in ms, by the workflow's clock. */
  readonly at: number;
  /** The workflow id of the run above all callers of this one; its own id if no run calls it. */
  readonly root: string;
  /** First execution run id of the run. */
  readonly firstRunId: string;
}

/**
 * Returns the state of a new run. Its agent is not loaded yet; its first message, if any, is in the
 * inbox.
 */
export function firstState({ input, at, root, firstRunId }: Beginning): RunState {
  const { open = false, attachments, contextBlob, turnContext, fork, archive = open } = input;
  const isEmpty =
    input.input === undefined && input.prompt === undefined && input.messages === undefined;
  const text = input.message ?? (isEmpty ? undefined : '');
  const config = unloadedConfig(input.agent);
  const context = contextBlob && { contextBlob: { ...contextBlob, root } };
  const state: RunState = {
    ...initialState({ ...config, ...context }, { open, startedAt: at }),
    ...(archive && { archives: true }),
    ...(fork && { forks: true }),
    ...(input.unattended && { unattended: input.unattended }),
    firstRunId,
  };
  if (text === undefined) return state;
  const { by, requesters } = input;
  const message = {
    id: '',
    text,
    turn: 1,
    ...(attachments && { attachments }),
    ...(input.artifacts && { artifacts: input.artifacts }),
    ...(turnContext && { context: turnContext }),
    ...(by !== undefined && { by }),
    ...(requesters && { requesters }),
    ...(input.input && { input: input.input }),
    ...(input.messages && { messages: input.messages }),
    ...(input.prompt !== undefined && { prompt: input.prompt }),
    ...(input.promptArgs && { args: input.promptArgs }),
    ...(input.settings && { settings: input.settings }),
  };
  return reduce(state, { type: 'message-received', message });
}
