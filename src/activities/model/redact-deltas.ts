import type { ModelDelta } from '../../models/model.js';
import { createStreamRedactor, type StreamRedactor } from '../../secrets/redact-stream.js';
import { redact } from '../../secrets/redact.js';

/** Removes secrets from the deltas of one reply on their way to readers. */
export interface DeltaRedactor {
  push(delta: ModelDelta): void;
  /** Emits the text that was held back because it could have become a secret. */
  end(): void;
}

/**
 * A shorter remainder is emitted before another part of the reply begins, so the parts stay in
 * order.
 */
const MAX_HELD_CHARACTERS = 4;

interface Part {
  readonly redactor: StreamRedactor;
  readonly emit: (text: string) => void;
}

/**
 * Creates the redactor of one reply, which calls `emit` with deltas without secrets. A secret may
 * span several deltas of the same part: the text, the reasoning, or the arguments of one call.
 */
export function createDeltaRedactor(emit: (delta: ModelDelta) => void): DeltaRedactor {
  const parts = new Map<string, Part>();
  let current: Part | undefined;

  const findPart = (delta: ModelDelta): Part => {
    const key = delta.kind === 'call' ? `call ${delta.index}` : delta.kind;
    const known = parts.get(key);
    if (known !== undefined) return known;
    const part: Part = {
      redactor: createStreamRedactor(),
      emit:
        delta.kind === 'call'
          ? (text) => emit({ kind: 'call', index: delta.index, text })
          : (text) => emit({ kind: delta.kind, text }),
    };
    parts.set(key, part);
    return part;
  };
  const flush = (part: Part): void => {
    const rest = part.redactor.end();
    if (rest !== '') part.emit(rest);
  };

  return {
    push(delta) {
      const part = findPart(delta);
      if (
        current !== undefined &&
        current !== part &&
        current.redactor.held < MAX_HELD_CHARACTERS
      ) {
        flush(current);
      }
      current = part;
      const text = part.redactor.push(delta.text);
      if (delta.kind === 'call' && delta.name !== undefined) {
        emit({ ...delta, name: redact(delta.name), text });
      } else if (text !== '') part.emit(text);
    },
    end() {
      for (const part of parts.values()) flush(part);
    },
  };
}
