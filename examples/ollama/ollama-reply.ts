import { ModelError, type ModelContext, type ModelReply } from 'perdure';
import { unusable } from './ollama-errors.js';

type Fields = Readonly<Record<string, unknown>>;

/** Pieces of an answer, of which a whole one is the only one, as a reply. */
export interface Assembly {
  add(value: unknown): void;
  /** Throws a `ModelError` where the answer never came to its end, or says nothing. */
  reply(): ModelReply;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function usageOf({ prompt_eval_count: input, eval_count: output }: Fields): ModelReply['usage'] {
  if (typeof input !== 'number' || typeof output !== 'number') return undefined;
  return { inputTokens: input, outputTokens: output, cachedTokens: 0 };
}

function callOf(value: unknown): ModelReply['calls'][number] {
  const asked = fieldsOf(fieldsOf(value)['function']);
  return { name: stringOf(asked['name']), arguments: JSON.stringify(asked['arguments'] ?? {}) };
}

/** A watcher that fails must not cost the reply. */
function safely(onDelta: ModelContext['onDelta']): NonNullable<ModelContext['onDelta']> {
  return (delta) => {
    try {
      onDelta?.(delta);
    } catch {
      // It is told the next piece all the same.
    }
  };
}

export function createAssembly(onDelta: ModelContext['onDelta']): Assembly {
  const tell = safely(onDelta);
  const calls: ModelReply['calls'][number][] = [];
  let text = '';
  let last: Fields | null = null;

  return {
    add(value) {
      const piece = fieldsOf(value);
      if (piece['error'] !== undefined) throw unusable('stream_error', stringOf(piece['error']));
      const message = fieldsOf(piece['message']);
      const thought = stringOf(message['thinking']);
      if (thought !== '') tell({ kind: 'reasoning', text: thought });
      const said = stringOf(message['content']);
      text += said;
      if (said !== '') tell({ kind: 'text', text: said });
      const asked: readonly unknown[] = Array.isArray(message['tool_calls'])
        ? message['tool_calls']
        : [];
      for (const call of asked.map(callOf)) {
        tell({ kind: 'call', index: calls.length, name: call.name, text: call.arguments });
        calls.push(call);
      }
      if (piece['done'] === true) last = piece;
    },
    reply() {
      if (last === null) throw unusable('stream_cut', 'ended before its answer was whole');
      const isCut = last['done_reason'] === 'length';
      if (text === '' && calls.length === 0 && !isCut) {
        const details = { kind: 'empty', type: 'empty_reply' } as const;
        throw new ModelError('Ollama answered with neither text nor calls', details);
      }
      const usage = usageOf(last);
      const finish = calls.length > 0 ? 'calls' : 'stop';
      return { text, calls, finish: isCut ? 'length' : finish, ...(usage && { usage }) };
    },
  };
}
