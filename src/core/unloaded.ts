import { DEFAULT_LIMITS } from './limits.js';
import type { RunConfig } from './state.js';

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
