import type { Delta } from '../../models/model.js';
import { createStreamRedactor, type StreamRedactor } from '../../secrets/redact-stream.js';
import { redact } from '../../secrets/redact.js';

/** The deltas of one reply, without secrets, on their way to readers. */
export interface DeltaRedactor {
  push(delta: Delta): void;
  /** Sends what was kept back because it could have become a secret. */
  end(): void;
}

/** A shorter end is sent before another part of the reply begins, so that the parts stay in order. */
const LONGEST_UNTOLD = 4;

interface Part {
  readonly redactor: StreamRedactor;
  readonly emit: (text: string) => void;
}

/** A secret may be split over several deltas of the same part: of the text, the reasoning, or a call. */
export function redactDeltas(emit: (delta: Delta) => void): DeltaRedactor {
  const parts = new Map<string, Part>();
  let current: Part | undefined;

  const partOf = (delta: Delta): Part => {
    const key = delta.type === 'call' ? `call ${delta.index}` : delta.type;
    const known = parts.get(key);
    if (known !== undefined) return known;
    const part: Part = {
      redactor: createStreamRedactor(),
      emit:
        delta.type === 'call'
          ? (text) => emit({ type: 'call', index: delta.index, arguments: text })
          : (text) => emit({ type: delta.type, text }),
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
      const part = partOf(delta);
      if (current !== undefined && current !== part && current.redactor.held < LONGEST_UNTOLD) {
        flush(current);
      }
      current = part;
      const given = delta.type === 'call' ? (delta.arguments ?? '') : delta.text;
      const text = part.redactor.push(given);
      if (delta.type === 'call' && delta.name !== undefined) {
        emit({ ...delta, name: redact(delta.name), arguments: text });
      } else if (text !== '') part.emit(text);
    },
    end() {
      for (const part of parts.values()) flush(part);
    },
  };
}
