import type { AgentDefinition, Limits } from '../../../src/core/definition/definition.js';
import type { ToolDefinition } from '../../../src/core/definition/tool-definition.js';
import type { RunConfig } from '../../../src/core/state/state.js';
import { config, toolDefinition, TOOLS } from '../scripts.js';
import type { Dice } from './dice.js';

/** The price of the simulated model: cached tokens are cheaper. */
export const PRICE = { input: 3, cachedInput: 0.5, output: 15 };

/** Tools of every kind and effect. */
const SIM_TOOLS: readonly ToolDefinition[] = [
  ...TOOLS,
  toolDefinition('refund', 'once', { verify: true }),
  toolDefinition('nap', 'read', { repeat: 'allow', kind: 'wait' }),
  toolDefinition('expert', 'keyed', {
    kind: 'agent',
    calls: { agent: 'expert', parentClose: 'request_cancel' },
  }),
  toolDefinition('screen', 'keyed', { repeat: 'allow' }),
  toolDefinition('post', 'keyed', { repeat: 'allow', undoMs: 30_000 }),
  toolDefinition('question', 'read', { kind: 'question', expiresMs: 20_000 }),
  toolDefinition('browser', 'keyed', { kind: 'client' }),
];

const LIMITS: readonly [Limits, ...Limits[]] = [
  {},
  { steps: 3 },
  { toolCalls: 2 },
  { steps: 4, run: { steps: 5, toolCalls: 6 } },
  { tokens: 3_000 },
  { costUsd: 0.02, run: { costUsd: 0.03 } },
  { wallMs: 60_000 },
  { wallMs: 100_000, run: { wallMs: 400_000 } },
  { depth: 1 },
  { run: { tokens: 5_000, wallMs: 50_000 } },
];

/** Returns the configuration of a simulated run. */
export function chooseConfig(dice: Dice): RunConfig {
  const definition: Partial<AgentDefinition> = {
    tools: SIM_TOOLS,
    toolCalls: dice.pick(['parallel', 'sequential', 'first']),
    onLimit: dice.pick(['answer', 'compose', 'fail', 'ask']),
    limits: dice.pick(LIMITS),
    settings: {
      ...(dice.chance(2) && { maxOutputTokens: 200 }),
      nativeTools: [{ type: 'computer', handler: 'screen' }],
    },
    ...(dice.chance(3) && { retrieve: { timeoutMs: 1_000 } }),
    ...(dice.chance(3) && {
      output: { type: 'json', name: 'answer', schema: {} },
      attempts: 2,
      onInvalid: dice.pick(['fail', 'best_effort']),
    }),
  };
  return {
    ...config({ ...definition, price: dice.chance(6) ? null : PRICE }),
    window: dice.pick([100_000, 1_500, 900]),
    segment: { steps: dice.pick([100, 2, 1]), bytes: 1e9, events: dice.pick([4_000, 40]) },
    ...(dice.chance(4) && { depth: 1 }),
    decisions: {
      ...(dice.chance(3) && { mayDecide: true }),
      ...(dice.chance(2) && { notify: true }),
    },
  };
}
