import { ApplicationFailure } from '@temporalio/common';
import type { BlobStore } from '../blobs/blob-store.js';
import type { ActivityProblem } from '../core/failure.js';
import type { Json } from '../core/json.js';
import { effectiveLimits, withinBudget } from '../core/limits.js';
import type { BlobRef } from '../core/messages.js';
import type { RunConfig } from '../core/state.js';
import type { LoadAgentInput } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';

const INLINE_CHARACTERS = 16_000;

/**
 * Gives all that a run pins at its start. Fails with `AgentUnknown` (another worker may know it) or
 * `AgentRefused` (no worker can start it like this).
 */
export async function loadAgent(
  { agents, models, blobs, searchAttributes, segment }: ActivityDependencies,
  input: LoadAgentInput,
): Promise<RunConfig> {
  const loaded = agents.named(input.agent);
  if (loaded === undefined) throw unknownAgent(input.agent, agents.names);
  const { definition } = loaded;
  if (definition.model === '') {
    throw refused(`agent "${definition.name}" names no model; give it one, or set PERDURE_MODEL`);
  }
  const asked = effectiveLimits(definition.limits, input.limits);
  if (typeof asked === 'string') throw refused(asked);
  const limits = withinBudget(asked, input.budget ?? {});
  const { price, window } = models.resolve(definition.model);
  if (price === null && (isSet(limits.turn.costUsd) || isSet(limits.run.costUsd))) {
    throw refused(
      `limits.costUsd: nobody knows the price of model "${definition.model}"; ` +
        'give `price` with the model in the config, or use limits.tokens',
    );
  }
  const contextBlob = input.context === undefined ? null : await keepContext(blobs, input.context);
  return {
    definition,
    limits,
    price,
    ...(window !== null && { window }),
    searchAttributes: await searchAttributes(),
    ...(contextBlob && { contextBlob }),
    ...(segment && { segment }),
    ...(input.depth !== undefined && input.depth > 0 && { depth: input.depth }),
  };
}

/** A small one may also travel with every call, should the store be down. */
async function keepContext(blobs: BlobStore, context: Json): Promise<BlobRef | null> {
  const text = JSON.stringify(context);
  try {
    return await blobs.put(text);
  } catch (error) {
    if (text.length <= INLINE_CHARACTERS) return null;
    throw error;
  }
}

function isSet(limit: number | null | undefined): boolean {
  return limit !== undefined && limit !== null;
}

function unknownAgent(name: string, known: readonly string[]): ApplicationFailure {
  const list = known.length === 0 ? 'it has none' : `it has ${known.join(', ')}`;
  return ApplicationFailure.create({
    type: 'AgentUnknown',
    message: `agent: this worker has no agent "${name}"; ${list}`,
  });
}

function refused(message: string): ApplicationFailure {
  const problem: ActivityProblem = { type: 'failed', reason: 'input', message };
  return ApplicationFailure.create({
    type: 'AgentRefused',
    nonRetryable: true,
    message,
    details: [problem],
  });
}
