import { definitionHash } from './hash.js';
import { DEFAULT_LIMITS } from '../limits.js';
import type { RunConfig, RunState } from '../state.js';

/** Returns the configuration of a run until its agent is loaded: enough for messages and for the status. */
export function unloadedConfig(agent: string): RunConfig {
  return {
    definition: {
      name: agent,
      instructions: '',
      model: '',
      tools: [],
      toolChoice: 'auto',
      toolCalls: 'parallel',
      onLimit: 'answer',
      limits: {},
      settings: {},
      hash: '',
    },
    limits: { turn: DEFAULT_LIMITS, run: {} },
    price: null,
    searchAttributes: [],
  };
}

/** Whether the run has pinned its agent. */
export function isLoaded(state: RunState): boolean {
  return state.config.definition.hash !== '';
}

/**
 * Whether a definition that was passed on has the hash of its content. A run without a loaded agent has
 * to have the definition of `unloadedConfig`.
 */
export function hasOwnHash(state: RunState): boolean {
  const { definition } = state.config;
  if (isLoaded(state)) return definitionHash(definition) === definition.hash;
  const empty = unloadedConfig(definition.name).definition;
  return definitionHash(definition) === definitionHash(empty);
}
