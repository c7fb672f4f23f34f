import type { Model, ModelError, ModelRequest } from './model.js';

/** Marks a model that sends no request. It is a property, so a model that wraps another one has it, too. */
const UNCALLABLE = Symbol('uncallable');

/** A request that says nothing. */
export const NO_REQUEST: ModelRequest = {
  model: '',
  instructions: '',
  messages: [],
  tools: [],
  toolChoice: 'none',
  settings: {},
};

/** Creates a model that has no key and no address: each call rejects with the error, and sends nothing. */
export function uncallableModel(
  reason: (request: Pick<ModelRequest, 'model'>) => ModelError | Promise<ModelError>,
): Model {
  const model: Model & { readonly [UNCALLABLE]: true } = {
    [UNCALLABLE]: true,
    async call(request, { signal }) {
      signal.throwIfAborted();
      const error = await reason(request);
      signal.throwIfAborted();
      throw error;
    },
  };
  return model;
}

/**
 * Rejects with the error of a model that has no key and no address, before anything is started with
 * it. Sends no request, so other models pass.
 */
export async function assertCallable(model: Model): Promise<void> {
  if (!(UNCALLABLE in model)) return;
  await model.call(NO_REQUEST, { signal: new AbortController().signal });
}
