import type { AgentDefinition } from '../../core/definition/definition.js';
import type { ModelCatalog } from '../../models/model-catalog.js';
import { ModelError, type ModelRequest } from '../../models/model.js';
import { LACKS, canTake } from '../../models/wire/api.js';
import type { FailureDecision } from './model-failures.js';

/** Failed attempts in a row after which the next model is called. */
const PATIENCE = 2;
/** A provider that asks for a longer wait is not waited for. */
const MAX_WAIT_MS = 10_000;
/** How long a worker begins with a fallback after a model has failed. */
const REST_MS = 60_000;
/** The wait before the next model is called. */
const DELAY_MS = 100;

/** Which model of an agent is called. */
export interface ModelTurn {
  /** Its place in the agent's list, from 0. */
  readonly index: number;
  /** Failed attempts with it in a row. */
  readonly failures: number;
}

/** The turn of an agent's first model. */
export const FIRST_TURN: ModelTurn = { index: 0, failures: 0 };

/** Returns the models of an agent in the order in which they are called. */
export function modelsOf({
  model,
  fallbacks = [],
}: Pick<AgentDefinition, 'model' | 'fallbacks'>): readonly [string, ...string[]] {
  return [model, ...fallbacks];
}

/** Returns the model whose turn it is; without a turn, the first one. */
export function modelAt(
  definition: Pick<AgentDefinition, 'model' | 'fallbacks'>,
  turn: ModelTurn | null,
): string {
  return modelsOf(definition)[turn?.index ?? 0] ?? definition.model;
}

/** The failure of an attempt, and the decision about it if the agent had only this model. */
export interface FailedTurn {
  readonly error: ModelError;
  readonly decision: FailureDecision;
  readonly turn: ModelTurn;
  /** The number of the agent's models. */
  readonly models: number;
  /** Number of failed attempts that may follow; absent: the run waits until a model answers. */
  readonly left?: number;
}

/**
 * Decides which model the next attempt calls, and when. Another provider can cure only an outage, an
 * overload, and a spent quota: a refused key or a refused request stays with its model, so that a
 * mistake in the configuration is seen. After the last model, the first one follows, and also after a
 * fallback that cannot take the request.
 */
export function decideTurn({ error, decision, turn, models, left = 1 }: FailedTurn): {
  readonly decision: FailureDecision;
  readonly turn: ModelTurn;
} {
  const failed = { ...turn, failures: turn.failures + 1 };
  if (models === 1 || left <= 0 || !isTurnOver(error, failed)) return { decision, turn: failed };
  const index = turn.index + 1;
  // After the last one, the decision is that of a model without fallbacks: to wait, or to block.
  if (index === models) return { decision, turn: FIRST_TURN };
  return { decision: { type: 'retry', delayMs: DELAY_MS }, turn: { index, failures: 0 } };
}

function isTurnOver(
  { details: { kind, type, retryAfterMs = 0 } }: ModelError,
  turn: ModelTurn,
): boolean {
  if (kind === 'quota' || isOutOfReach({ kind, type })) return true;
  return kind === 'retry' && (turn.failures >= PATIENCE || retryAfterMs > MAX_WAIT_MS);
}

/**
 * Returns the failure of a fallback that cannot take a request, such as one with an image, as an
 * outage of the agent: its first model may take the request. The first model's own failure stays.
 */
export function asOutage(error: ModelError, turn: ModelTurn | null): ModelError {
  const { details, message } = error;
  if ((turn?.index ?? 0) === 0 || !LACKS.includes(details.type)) return error;
  return new ModelError(message, { ...details, kind: 'retry' });
}

/** Whether a fallback has failed only because it cannot take the request. */
export function isOutOfReach({
  kind,
  type,
}: Pick<ModelError['details'], 'kind' | 'type'>): boolean {
  return kind === 'retry' && LACKS.includes(type);
}

/** Until when this worker does not begin with a model, in Unix ms. */
const rests = new WeakMap<ModelCatalog, Map<string, number>>();

/** Notes that a model has failed, so the next calls of this worker begin with its fallback. */
export function rest(catalog: ModelCatalog, model: string, now: number): void {
  const resting = rests.get(catalog) ?? new Map<string, number>();
  rests.set(catalog, resting.set(model, now + REST_MS));
}

/**
 * Returns the first of the agent's models that has not failed lately, without the fallbacks that
 * cannot take the request; the first one if there is none.
 */
export function firstTurn(
  catalog: ModelCatalog,
  definition: Pick<AgentDefinition, 'model' | 'fallbacks'>,
  { request, now }: { readonly request: ModelRequest; readonly now: number },
): ModelTurn {
  const resting = rests.get(catalog);
  const index = modelsOf(definition).findIndex(
    (model, place) =>
      (resting?.get(model) ?? 0) <= now &&
      (place === 0 || canTake(request, catalog.resolve(model).capabilities)),
  );
  return { index: Math.max(0, index), failures: 0 };
}
