import type { Info } from '@temporalio/activity';
import type { LiveAttempt } from '../../live/attempts.js';
import type { LiveHub } from '../../live/hub.js';
import { processHub } from '../../live/process-hub.js';
import type { ModelDelta } from '../../models/model.js';
import { type StreamRedactor, createStreamRedactor, redact } from '../../secrets/redact.js';

/** Removes secrets from the deltas of one reply on their way to readers. */
interface DeltaRedactor {
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
function createDeltaRedactor(emit: (delta: ModelDelta) => void): DeltaRedactor {
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

/** A reply in progress, on its way to readers. */
export interface LiveReply {
  /** Appends a delta, without secrets. */
  readonly push: (delta: ModelDelta) => void;
  /** Passes on what was held back because it could have become a secret. */
  flush(): void;
  /** Ends the reply. `isVoid`: it does not count, although its attempt goes on. */
  end(how?: { readonly isVoid: boolean }): void;
}

/**
 * Opens a reply in the worker's live hub, and for the clients of this process that read the run.
 * Returns null if there is neither, so nothing can read its deltas.
 */
export function openLiveReply(
  live: LiveHub | undefined,
  { activityId, attempt, workflowExecution }: Info,
  place: Pick<LiveAttempt, 'turn' | 'step' | 'node'>,
): LiveReply | null {
  if (workflowExecution === undefined) return null;
  const { workflowId, runId } = workflowExecution;
  const own = processHub.isWatched(workflowId) ? [processHub] : [];
  const hubs = live === undefined ? own : [live, ...own];
  if (hubs.length === 0) return null;
  const of = { segment: runId, activity: activityId, attempt, ...place };
  const writers = hubs.map((hub) => hub.begin(workflowId, of));
  const redactor = createDeltaRedactor((delta) => {
    for (const writer of writers) writer.push(delta);
  });
  return {
    push: (delta) => redactor.push(delta),
    flush: () => redactor.end(),
    end(how) {
      redactor.end();
      for (const writer of writers) writer.end(how);
    },
  };
}
