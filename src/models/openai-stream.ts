import { isObject } from '../core/json.js';
import { MOST_LOGPROBS } from './logprobs.js';

interface AssembledCall {
  readonly index: unknown;
  readonly id: unknown;
  name: string;
  arguments: string;
}

/** Gathers the chunks of a stream into the shape of a completion that was sent whole. */
export interface StreamAssembly {
  add(chunk: unknown): void;
  /** True once the provider has given its reason to end: only then is the answer whole. */
  isFinished(): boolean;
  completion(): unknown;
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/**
 * The call that a piece belongs to; undefined when it begins a new one. OpenAI numbers calls by
 * `index`; other servers leave it out or send 0 for all calls, so a name with a new id begins a
 * new call.
 */
function belongsTo(
  calls: readonly AssembledCall[],
  piece: Record<string, unknown>,
): AssembledCall | undefined {
  const { id, index } = piece;
  const asked = isObject(piece['function']) ? piece['function'] : {};
  const hasId = stringOf(id) !== '';
  const isNamed = stringOf(asked['name']) !== '';
  if (typeof index !== 'number') {
    const byId = hasId ? calls.findLast((call) => call.id === id) : undefined;
    return byId ?? (isNamed ? undefined : calls.at(-1));
  }
  const numbered = calls.filter((call) => call.index === index);
  const same = numbered.findLast((call) => hasId && call.id === id);
  const latest = numbered.at(-1);
  return same ?? (hasId && isNamed && stringOf(latest?.id) !== '' ? undefined : latest);
}

function addCall(calls: AssembledCall[], piece: unknown): void {
  if (!isObject(piece)) return;
  let call = belongsTo(calls, piece);
  if (call === undefined) {
    call = { index: piece['index'], id: piece['id'], name: '', arguments: '' };
    calls.push(call);
  }
  const asked = isObject(piece['function']) ? piece['function'] : {};
  // Some servers repeat the name in each piece, so it is taken once, not joined.
  if (call.name === '') call.name = stringOf(asked['name']);
  const more = asked['arguments'];
  if (typeof more === 'string') call.arguments += more;
  else if (isObject(more)) call.arguments += JSON.stringify(more);
}

export function assembleStream(): StreamAssembly {
  const calls: AssembledCall[] = [];
  let content = '';
  let refusal = '';
  let reason: unknown = null;
  let usage: unknown;
  const logprobs: unknown[] = [];

  return {
    add(chunk) {
      if (!isObject(chunk)) return;
      if (isObject(chunk['usage'])) usage = chunk['usage'];
      const choice: unknown = Array.isArray(chunk['choices']) ? chunk['choices'][0] : undefined;
      if (!isObject(choice)) return;
      reason = choice['finish_reason'] ?? reason;
      const told = isObject(choice['logprobs']) ? choice['logprobs']['content'] : undefined;
      if (Array.isArray(told) && logprobs.length < MOST_LOGPROBS) logprobs.push(...told);
      const delta = isObject(choice['delta']) ? choice['delta'] : {};
      content += stringOf(delta['content']);
      refusal += stringOf(delta['refusal']);
      if (Array.isArray(delta['tool_calls'])) {
        for (const piece of delta['tool_calls']) addCall(calls, piece);
      }
    },
    isFinished: () => reason !== null,
    completion: () => ({
      choices: [
        {
          finish_reason: reason,
          ...(logprobs.length > 0 && { logprobs: { content: logprobs } }),
          message: {
            content,
            refusal,
            tool_calls: calls.map((call) => ({
              function: { name: call.name, arguments: call.arguments },
            })),
          },
        },
      ],
      usage,
    }),
  };
}
