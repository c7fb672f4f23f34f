import type { ModelReply, ModelRequest } from '../model.js';
import type { Parameter } from '../parameters.js';

/** How a request is made, and what its failure says of the request. */
export interface Asking {
  ask(request: ModelRequest): Promise<ModelReply>;
  /** The parameter that the server has refused with this error; null when it is about anything else. */
  refusal(error: unknown, request: ModelRequest): Parameter | null;
}

/**
 * Makes a call, and where the server refuses a parameter, once more without it: nothing was paid for
 * yet, and each parameter can be left out only once, so this ends. Any other error is thrown as it is.
 */
export async function askWithout(
  asking: Asking,
  request: ModelRequest,
  dropped: readonly Parameter[] = [],
): Promise<ModelReply> {
  try {
    const reply = await asking.ask(request);
    return dropped.length === 0 ? reply : { ...reply, dropped };
  } catch (error) {
    const refused = asking.refusal(error, request);
    const without = request.without ?? [];
    if (refused === null || without.includes(refused)) throw error;
    return await askWithout(asking, { ...request, without: [...without, refused] }, [
      ...dropped,
      refused,
    ]);
  }
}
