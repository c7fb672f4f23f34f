import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3GenerateResult,
  LanguageModelV3Message,
} from '@ai-sdk/provider';
import { ModelError, type Model, type ModelReply, type ModelRequest } from 'perdure/models';

/**
 * Converts a message; `names` has the tool of each call, which the AI SDK requires with its result.
 */
function toMessage(
  message: ModelRequest['messages'][number],
  names: Map<string, string>,
): LanguageModelV3Message {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: [{ type: 'text', text: message.text }] };
    case 'tool': {
      const { callId: toolCallId, text: value } = message;
      const toolName = names.get(toolCallId) ?? '';
      const result = { toolCallId, toolName, output: { type: 'text', value } } as const;
      return { role: 'tool', content: [{ type: 'tool-result', ...result }] };
    }
    case 'assistant': {
      const calls = (message.calls ?? []).map(({ id, name, arguments: text }) => {
        names.set(id, name);
        const input: unknown = JSON.parse(text);
        return { type: 'tool-call', toolCallId: id, toolName: name, input } as const;
      });
      const texts = message.text === '' ? [] : [{ type: 'text', text: message.text } as const];
      return { role: 'assistant', content: [...texts, ...calls] };
    }
  }
}

function toOptions(request: ModelRequest, abortSignal: AbortSignal): LanguageModelV3CallOptions {
  const names = new Map<string, string>();
  const { instructions, responseFormat: format, settings } = request;
  const { temperature, maxOutputTokens } = settings;
  return {
    prompt: [
      { role: 'system', content: instructions },
      ...request.messages.map((message) => toMessage(message, names)),
    ],
    abortSignal,
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(format && { responseFormat: { type: 'json', name: format.name, schema: format.schema } }),
    ...(request.tools.length > 0 && {
      tools: request.tools.map(({ name, description, parameters: inputSchema }) => {
        return { type: 'function', name, description, inputSchema } as const;
      }),
      toolChoice: { type: request.toolChoice },
    }),
  };
}

function toUsage({ usage }: LanguageModelV3GenerateResult): Pick<ModelReply, 'usage'> {
  const { total: inputTokens, cacheRead: cachedTokens = 0 } = usage.inputTokens;
  const { total: outputTokens, reasoning: reasoningTokens } = usage.outputTokens;
  if (inputTokens === undefined || outputTokens === undefined) return {};
  const reasoning = reasoningTokens !== undefined && { reasoningTokens };
  return { usage: { inputTokens, outputTokens, cachedTokens, ...reasoning } };
}

function toReply(result: LanguageModelV3GenerateResult): ModelReply {
  const { content } = result;
  const { unified } = result.finishReason;
  const usage = toUsage(result);
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const asked = content.filter((part) => part.type === 'tool-call');
  const calls = asked.map(({ toolName: name, input }) => ({ name, arguments: input }));
  if (unified === 'error') throw new Error('the model returned an incomplete answer');
  if (unified === 'content-filter') return { text, calls: [], finish: 'filtered', ...usage };
  const ended = calls.length > 0 ? 'calls' : 'stop';
  const finish = unified === 'length' ? 'length' : ended;
  if (text === '' && finish === 'stop') {
    throw new ModelError('the reply is empty', { kind: 'empty', type: 'empty_reply' });
  }
  return { text, calls, finish, ...usage };
}

function toKind(status: number, isRetryable: unknown) {
  if (status === 401 || status === 403) return 'credentials';
  if (status === 402 || status === 404) return status === 402 ? 'quota' : 'model';
  return isRetryable === false ? 'request' : 'retry';
}

/**
 * Creates the error that decides whether Temporal retries. Causes could contain the prompt, so they
 * are removed.
 */
function toError(error: unknown): ModelError {
  const { statusCode: status, isRetryable }: Record<string, unknown> = { ...(error as object) };
  const text = error instanceof Error ? error.message : String(error);
  if (typeof status !== 'number') return new ModelError(text, { kind: 'retry', type: 'provider' });
  const kind = toKind(status, isRetryable);
  return new ModelError(text, { kind, type: `http_${status}`, status });
}

/**
 * Emits a whole reply as one delta. Rejects if the listener throws, which must not cost the reply.
 */
async function show({ text, calls }: ModelReply, { onDelta }: Parameters<Model['call']>[1]) {
  if (text !== '') onDelta?.({ kind: 'text', text });
  for (const [index, { name, arguments: json }] of calls.entries()) {
    onDelta?.({ kind: 'call', index, name, text: json });
  }
}

/** Turns a model of any AI SDK provider into one of perdure's. Attachments are not sent. */
export function aiSdkModel(model: LanguageModelV3): Model {
  return {
    async call(request, context) {
      context.signal.throwIfAborted();
      try {
        const reply = toReply(await model.doGenerate(toOptions(request, context.signal)));
        show(reply, context).catch(() => undefined);
        return reply;
      } catch (error) {
        context.signal.throwIfAborted();
        throw error instanceof ModelError ? error : toError(error);
      }
    },
  };
}
