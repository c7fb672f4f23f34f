import { ModelError, type Model, type ModelContext, type ModelReply } from 'perdure/models';
import { lostConnection, toModelError, unusable } from './ollama-errors.js';
import { createAssembly, type Assembly } from './ollama-reply.js';
import { toWireRequest } from './ollama-request.js';

export interface OllamaOptions {
  readonly baseUrl: string;
  /** Ollama's name for the model. */
  readonly model: string;
  /** The maximum duration of a whole call, in milliseconds; default 10 minutes. */
  readonly timeoutMs?: number;
  /** The maximum time without a byte in a streamed reply, in milliseconds; default 5 minutes. */
  readonly idleMs?: number;
}

/** Yields the JSON values of a body that has one per line. */
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

/** Aborts a call at its total timeout, after a silence, or with the caller's own signal. */
function watchCall(caller: AbortSignal, limits: { timeoutMs: number; idleMs: number }) {
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

async function readReply(
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
 * Creates a model that uses Ollama's own protocol, `POST /api/chat`: one JSON value, or one per
 * line. It fulfills the contract of `Model`: it sends one request, returns a whole reply or throws
 * a `ModelError`, and ends soon after the signal aborts.
 */
export function ollamaModel(options: OllamaOptions): Model {
  const { baseUrl, model, timeoutMs = 600_000, idleMs = 300_000 } = options;

  async function ask(
    request: Parameters<Model['call']>[0],
    { onDelta }: ModelContext,
    watch: ReturnType<typeof watchCall>,
  ): Promise<ModelReply> {
    const stream = onDelta !== undefined;
    const response = await fetch(`${baseUrl}/api/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(toWireRequest({ ...request, model }, { stream })),
      signal: watch.signal,
    });
    if (!response.ok) throw toModelError(response, await response.text());
    const assembly = createAssembly(onDelta);
    // Without streaming, the server is silent until the whole answer is ready.
    const progress = (): void => {
      if (stream) watch.progress();
    };
    if (response.body) await readReply(response.body, assembly, progress);
    return assembly.reply();
  }

  return {
    async call(request, context) {
      context.signal.throwIfAborted();
      const watch = watchCall(context.signal, { timeoutMs, idleMs });
      try {
        return await ask(request, context, watch);
      } catch (error) {
        context.signal.throwIfAborted();
        const expired = watch.expired();
        if (expired !== null) throw unusable(expired, 'did not continue its answer in time');
        throw error instanceof ModelError ? error : lostConnection(error);
      } finally {
        watch.stop();
      }
    },
  };
}
