import { definitionHash } from './hash.js';
import { DEFAULT_LIMITS } from '../limits.js';
import type { RunConfig, RunState } from '../state.js';

/**
 * Returns the configuration of a run until its agent is loaded; it suffices for messages and the
 * status.
 */
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
 * Whether the hash of a carried definition matches its content. A run without a loaded agent must
 * have the definition from `unloadedConfig`.
 */
export function hasOwnHash(state: RunState): boolean {
  const { definition } = state.config;
  if (isLoaded(state)) return definitionHash(definition) === definition.hash;
  const empty = unloadedConfig(definition.name).definition;
  return definitionHash(definition) === definitionHash(empty);
}
