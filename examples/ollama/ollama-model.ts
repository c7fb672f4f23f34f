import { ModelError, type Model, type ModelContext, type ModelReply } from 'perdure';
import { failureOf, lostConnection, unusable } from './ollama-errors.js';
import { createAssembly, type Assembly } from './ollama-reply.js';
import { wireRequest } from './ollama-request.js';

export interface OllamaOptions {
  readonly baseUrl: string;
  /** The name at Ollama. */
  readonly model: string;
  /** Milliseconds a whole call may take; default 10 minutes. */
  readonly timeoutMs?: number;
  /** Milliseconds without a byte after which a streamed reply is given up; default 5 minutes. */
  readonly idleMs?: number;
}

/** The JSON values of a body with one on each line. */
async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) if (part.trim() !== '') yield parse(part);
  }
  rest += decoder.decode();
  if (rest.trim() !== '') yield parse(rest);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unusable('bad_json', `sent broken JSON: ${text.slice(0, 200)}`);
  }
}

/** One clock for the whole call, one that each piece winds up again, and the caller's own signal. */
function watch(caller: AbortSignal, limits: { timeoutMs: number; idleMs: number }) {
  const controller = new AbortController();
  let expired: 'timeout' | 'idle' | null = null;
  const end = (why: 'timeout' | 'idle') => () => {
    expired ??= why;
    controller.abort();
  };
  const follow = (): void => controller.abort();
  caller.addEventListener('abort', follow, { once: true });
  const total = setTimeout(end('timeout'), limits.timeoutMs);
  let idle: NodeJS.Timeout | undefined;
  return {
    signal: controller.signal,
    progress(): void {
      idle ??= setTimeout(end('idle'), limits.idleMs);
      idle.refresh();
    },
    expired: () => expired,
    stop(): void {
      clearTimeout(total);
      clearTimeout(idle);
      caller.removeEventListener('abort', follow);
    },
  };
}

async function gather(
  body: ReadableStream<Uint8Array>,
  assembly: Assembly,
  progress: () => void,
): Promise<void> {
  progress();
  for await (const value of lines(body)) {
    progress();
    assembly.add(value);
  }
}

/**
 * A model behind Ollama's own protocol, `POST /api/chat`: one JSON value, or one on each line. It keeps
 * the contract of `Model`: a whole reply or a `ModelError`, one request, an end soon after the signal.
 */
export function ollamaModel(options: OllamaOptions): Model {
  const { baseUrl, model, timeoutMs = 600_000, idleMs = 300_000 } = options;

  async function ask(
    request: Parameters<Model['call']>[0],
    { onDelta }: ModelContext,
    clock: ReturnType<typeof watch>,
  ): Promise<ModelReply> {
    const stream = onDelta !== undefined;
    const response = await fetch(`${baseUrl}/api/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(wireRequest({ ...request, model }, { stream })),
      signal: clock.signal,
    });
    if (!response.ok) throw failureOf(response, await response.text());
    const assembly = createAssembly(onDelta);
    // Where the whole answer comes at once, the server may be silent for as long as it takes.
    const progress = (): void => {
      if (stream) clock.progress();
    };
    if (response.body) await gather(response.body, assembly, progress);
    return assembly.reply();
  }

  return {
    async call(request, context) {
      context.signal.throwIfAborted();
      const clock = watch(context.signal, { timeoutMs, idleMs });
      try {
        return await ask(request, context, clock);
      } catch (error) {
        context.signal.throwIfAborted();
        const expired = clock.expired();
        if (expired !== null) throw unusable(expired, 'did not go on with its answer in time');
        throw error instanceof ModelError ? error : lostConnection(error);
      } finally {
        clock.stop();
      }
    },
  };
}
