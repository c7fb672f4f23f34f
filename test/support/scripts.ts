import type { Limits } from '../../src/core/definition/definition.js';
import type { Effect, ToolDefinition } from '../../src/core/definition/tool-definition.js';
import type { CallResult } from '../../src/core/transcript/call-result.js';
import type { SegmentFacts } from '../../src/core/run/carry.js';
import type { RequestedCall } from '../../src/core/transcript/messages.js';
import type { RecordedReply } from '../../src/core/transcript/outcome.js';
import { effectiveLimits } from '../../src/core/rules/limits.js';
import { sha256Hex } from '../../src/core/text/json.js';
import {
  initialState,
  SEMANTICS,
  type RunConfig,
  type RunState,
} from '../../src/core/state/state.js';
import { reduce } from '../../src/core/run/reduce.js';

/** A history size that does not fill a segment; the steps of a run still may. */
export const SHORT: SegmentFacts = { historyBytes: 0, historyEvents: 0, suggested: false };

export function toolDefinition(
  name: string,
  effect: Effect,
  rest: Partial<ToolDefinition> = {},
): ToolDefinition {
  return {
    name,
    description: name,
    parameters: { type: 'object' },
    effect,
    timeoutMs: 1_000,
    heartbeatMs: 1_000,
    attempts: 1,
    ...rest,
  };
}

export const TOOLS: readonly ToolDefinition[] = [
  toolDefinition('look', 'read'),
  toolDefinition('put', 'keyed'),
  toolDefinition('pay', 'once'),
  toolDefinition('done', 'read', { ends: true }),
  toolDefinition('poll', 'read', { repeat: 'allow' }),
];

export function config(
  rest: Partial<RunConfig['definition']> & { price?: RunConfig['price'] } = {},
  input: Limits = {},
): RunConfig {
  const { price = null, ...given } = rest;
  const limits = effectiveLimits(given.limits ?? {}, input);
  if (typeof limits === 'string') throw new Error(limits);
  return {
    definition: {
      name: 'test',
      instructions: 'be brief',
      model: 'm',
      tools: TOOLS,
      toolChoice: 'auto',
      toolCalls: 'parallel',
      onLimit: 'answer',
      limits: {},
      settings: {},
      hash: 'h',
      ...given,
    },
    semantics: SEMANTICS,
    revised: true,
    limits,
    price,
    searchAttributes: [],
  };
}

/** A run that has just received its first message. */
export function begun(runConfig: RunConfig, text = 'go'): RunState {
  const message = { id: '', text, turn: 1 };
  const waiting = reduce(initialState(runConfig), { type: 'message-received', message });
  return reduce(waiting, { type: 'turn-begun', at: 0 });
}

export function callReply(...calls: readonly (readonly [string, unknown?])[]): RecordedReply {
  return {
    text: '',
    calls: calls.map(([name, value = {}]): RequestedCall => {
      const json = JSON.stringify(value);
      return { name, arguments: json, digest: sha256Hex(json) };
    }),
    finish: 'calls',
    usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 0 },
  };
}

export function textReply(text: string, finish: RecordedReply['finish'] = 'stop'): RecordedReply {
  return { text, finish, usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 0 } };
}

/**
 * Returns the state after calls of the open batch have ended with these results, in the order
 * given.
 */
export function withResults(state: RunState, results: readonly CallResult[], at = 0): RunState {
  return results.reduce(
    (before, result) => reduce(before, { type: 'call-finished', result, at }),
    state,
  );
}
