import { LRUCache } from 'lru-cache';
import { sha256Hex } from '../../core/digest.js';
import type { ModelRequest } from '../model.js';
import type { RequestParameter } from '../parameters.js';
import type { SentParameter } from './refusals.js';

/** How long a refusal counts: a server may accept the parameter after an update. */
const REMEMBERED_MS = 60 * 60_000;
const MAX_REMEMBERED = 500;

/**
 * What one server has refused, so that the next run does not send it again. Each model of a config
 * has its own, because the answer may also depend on the key.
 */
export interface KnownRefusals {
  /**
   * Returns what the server has refused of this request before, in the order in which it would
   * refuse it. `listSent` returns what a request would send.
   */
  recall(
    request: ModelRequest,
    listSent: (request: ModelRequest) => readonly SentParameter[],
  ): readonly RequestParameter[];
  /** Notes what the server refused of a request that it accepted in another form. */
  learn(request: ModelRequest, refused: readonly RequestParameter[]): void;
}

/** Creates an empty memory. `now`: Unix time in ms; default: the clock. */
export function createKnownRefusals(now: () => number = Date.now): KnownRefusals {
  const refusedAt = new LRUCache<string, number>({ max: MAX_REMEMBERED });
  const isKnown = (key: string): boolean => {
    const at = refusedAt.get(key);
    return at !== undefined && now() - at < REMEMBERED_MS;
  };
  return {
    recall(request, listSent) {
      if (refusedAt.size === 0) return [];
      const keyOf = createKeys(request);
      const recalled: RequestParameter[] = [];
      for (;;) {
        const without = [...(request.without ?? []), ...recalled];
        const next = listSent({ ...request, without }).find(
          ({ parameter }) => !without.includes(parameter) && isKnown(keyOf(parameter)),
        );
        if (next === undefined) return recalled;
        recalled.push(next.parameter);
      }
    },
    learn(request, refused) {
      if (refused.length === 0) return;
      const keyOf = createKeys(request);
      for (const parameter of refused) {
        if (!isOfRun(parameter)) refusedAt.set(keyOf(parameter), now());
      }
    },
  };
}

/** The provider's items belong to one run: another run's may be accepted. */
function isOfRun(parameter: RequestParameter): boolean {
  return parameter.startsWith('provider_items');
}

/**
 * Parameters that a server may refuse for what else is in the request: a setting beside another one,
 * a format beside tools, a certain schema.
 */
const IN_CONTEXT = /^(?:settings\.|response_format|tool_choice|tools:|logprobs|include$|store$)/;

/** Returns a function for the keys under which the refusals of a request are known. */
function createKeys({
  model,
  settings,
  tools,
  toolChoice,
  responseFormat,
}: ModelRequest): (parameter: RequestParameter) => string {
  let context: string | undefined;
  return (parameter) => {
    if (!IN_CONTEXT.test(parameter)) return `${model} ${parameter}`;
    context ??= sha256Hex(JSON.stringify([settings, tools, toolChoice, responseFormat]));
    return `${model} ${parameter} ${context}`;
  };
}
