import type { ModelContext, ModelDelta, ModelReply } from './model.js';

/** Emits one delta of a reply in progress; never throws. */
export type EmitDelta = (delta: ModelDelta) => void;

export const ignoreDeltas: EmitDelta = () => {};

/**
 * Wraps the listener of a call so that it cannot fail the call: after it throws, or its promise
 * rejects, it gets no more deltas.
 */
export function createEmitter(onDelta: ModelContext['onDelta']): EmitDelta {
  if (onDelta === undefined) return ignoreDeltas;
  let hasFailed = false;
  return (delta) => {
    if (hasFailed) return;
    try {
      const result: unknown = onDelta(delta);
      if (result instanceof Promise) result.catch(() => void (hasFailed = true));
    } catch {
      hasFailed = true;
    }
  };
}

/** Emits a reply that did not arrive as a stream. */
export function emitReply(
  { text, calls }: Pick<ModelReply, 'text' | 'calls'>,
  emit: EmitDelta,
): void {
  if (text !== '') emit({ kind: 'text', text });
  for (const [index, call] of calls.entries()) {
    emit({ kind: 'call', index, name: call.name, text: call.arguments });
  }
}
