import { definitionHash } from './hash.js';
import { DEFAULT_LIMITS } from '../limits.js';
import type { RunConfig, RunState } from '../state.js';

/** What stands for an agent until it is loaded: enough to take messages and to say how the run is. */
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
 * Whether the definition of carried state has the hash of its content. A run that is still looking for
 * its agent carries what stands for it, which has none.
 */
export function hasOwnHash(state: RunState): boolean {
  const { definition } = state.config;
  if (isLoaded(state)) return definitionHash(definition) === definition.hash;
  const empty = unloadedConfig(definition.name).definition;
  return definitionHash(definition) === definitionHash(empty);
}
