import { ModelError, type ModelContext, type ModelReply } from 'perdure/models';
import { unusable } from './ollama-errors.js';

type Fields = Readonly<Record<string, unknown>>;

/** Assembles a reply from the parts of a stream, or from one whole answer. */
export interface Assembly {
  add(value: unknown): void;
  /** Throws a `ModelError` if the answer is incomplete or empty. */
  reply(): ModelReply;
}

function toFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function toUsage({ prompt_eval_count: input, eval_count: output }: Fields): ModelReply['usage'] {
  if (typeof input !== 'number' || typeof output !== 'number') return undefined;
  return { inputTokens: input, outputTokens: output, cachedTokens: 0 };
}

function toCall(value: unknown): ModelReply['calls'][number] {
  const requested = toFields(toFields(value)['function']);
  return {
    name: toText(requested['name']),
    arguments: JSON.stringify(requested['arguments'] ?? {}),
  };
}

/** Returns a function that passes deltas on and ignores errors, which must not cost the reply. */
function ignoringErrors(onDelta: ModelContext['onDelta']): NonNullable<ModelContext['onDelta']> {
  return (delta) => {
    try {
      onDelta?.(delta);
    } catch {
      // The next delta is passed on regardless.
    }
  };
}

export function createAssembly(onDelta: ModelContext['onDelta']): Assembly {
  const emit = ignoringErrors(onDelta);
  const calls: ModelReply['calls'][number][] = [];
  let text = '';
  let last: Fields | null = null;

  return {
    add(value) {
      const part = toFields(value);
      if (part['error'] !== undefined) throw unusable('stream_error', toText(part['error']));
      const message = toFields(part['message']);
      const thought = toText(message['thinking']);
      if (thought !== '') emit({ kind: 'reasoning', text: thought });
      const content = toText(message['content']);
      text += content;
      if (content !== '') emit({ kind: 'text', text: content });
      const requested: readonly unknown[] = Array.isArray(message['tool_calls'])
        ? message['tool_calls']
        : [];
      for (const call of requested.map(toCall)) {
        emit({ kind: 'call', index: calls.length, name: call.name, text: call.arguments });
        calls.push(call);
      }
      if (part['done'] === true) last = part;
    },
    reply() {
      if (last === null) throw unusable('stream_cut', 'ended before its answer was complete');
      const isCut = last['done_reason'] === 'length';
      if (text === '' && calls.length === 0 && !isCut) {
        const details = { kind: 'empty', type: 'empty_reply' } as const;
        throw new ModelError('Ollama answered with neither text nor calls', details);
      }
      const usage = toUsage(last);
      const finish = calls.length > 0 ? 'calls' : 'stop';
      return { text, calls, finish: isCut ? 'length' : finish, ...(usage && { usage }) };
    },
  };
}
