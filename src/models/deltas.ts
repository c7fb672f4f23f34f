import type { Delta, ModelContext, ModelReply } from './model.js';

/** Tells a piece of a reply; never throws. */
export type Tell = (delta: Delta) => void;

/** For calls that nobody watches. */
export const untold: Tell = () => {};

/**
 * Who watches, in a form that cannot cost the reply: one that throws is told no more, and what an
 * asynchronous one rejects with is dropped.
 */
export function tellSafely(onDelta: ModelContext['onDelta']): Tell {
  if (onDelta === undefined) return untold;
  let isFit = true;
  return (delta) => {
    if (!isFit) return;
    try {
      const given: unknown = onDelta(delta);
      if (given instanceof Promise) given.catch(() => void (isFit = false));
    } catch {
      isFit = false;
    }
  };
}

/** Tells a reply that came in one piece. */
export function tellWhole({ text, calls }: Pick<ModelReply, 'text' | 'calls'>, tell: Tell): void {
  if (text !== '') tell({ type: 'text', text });
  for (const [index, { name, arguments: args }] of calls.entries()) {
    tell({ type: 'call', index, name, arguments: args });
  }
}
