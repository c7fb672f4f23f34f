import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible as createV2 } from 'ai-sdk-compatible-v2';
import { createOpenAICompatible as createV4 } from 'ai-sdk-compatible-v4';
import { type AiSdkLanguageModel, aiSdkModel } from '../../src/models/ai-sdk/model.js';
import { anthropicModel } from '../../src/models/anthropic/model.js';
import { openAiModel, type OpenAiModelOptions } from '../../src/models/openai/model.js';
import type { ModelUsage } from '../../src/models/model.js';
import {
  replyCalls,
  replyError,
  replyRaw,
  replyRefusal,
  replyReset,
  replyText,
  type CompletionOptions,
  type Reply,
} from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import {
  describeAdapter,
  type AdapterUnderTest,
  type Scene,
  type Wire,
} from './adapter-contract.js';

interface OpenAiWire extends Wire {
  readonly baseUrl: string;
}

function wireUsage({ inputTokens, outputTokens, cachedTokens }: ModelUsage) {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

const FINISH = { length: 'length', filtered: 'content_filter', refused: 'stop' } as const;

function replyStep({ text = '', calls = [], ...scene }: Extract<Scene, { type: 'reply' }>): Reply {
  const { usage, finish, reasoning, cut, holdBeforeHeaders, holdAfterHeaders } = scene;
  const options: CompletionOptions = {
    sse: { charactersPerEvent: 3 },
    ...(finish && { finish: FINISH[finish] }),
    ...(usage !== undefined && { usage: usage === null ? null : wireUsage(usage) }),
    ...(reasoning !== undefined && { reasoning }),
    ...(cut && { cut: { afterBytes: 90, how: cut } }),
    ...(holdBeforeHeaders !== undefined && { holdBeforeHeaders }),
    ...(holdAfterHeaders !== undefined && { holdAfterHeaders }),
  };
  if (finish === 'refused') return replyRefusal(text, options);
  if (calls.length === 0) return replyText(text, options);
  const modelRequest = calls.map((call) => ({ ...call, arguments: call.arguments as string }));
  return replyCalls(modelRequest, { ...options, ...(text !== '' && { text }) });
}

function stepOf(scene: Scene): Reply {
  switch (scene.type) {
    case 'reply':
      return replyStep(scene);
    case 'error': {
      const { status, error = {}, headers = {} } = scene;
      return replyError(status, error, { headers });
    }
    case 'raw':
      return replyRaw(scene.body, {
        headers: { 'content-type': scene.contentType ?? 'application/json' },
      });
    case 'reset':
      return replyReset();
  }
}

async function openWire(): Promise<OpenAiWire> {
  const stub = await startStub();
  return {
    baseUrl: stub.baseUrl,
    get requestCount() {
      return stub.requestCount;
    },
    script: (scenes) => stub.script(...scenes.map(stepOf)),
    reached: (barrier) => stub.barrier(barrier).reached,
    async abandoned() {
      const end = await stub.requests.at(-1)?.ended;
      if (end !== 'client') throw new Error(`the exchange ended otherwise: ${end}`);
    },
    close: () => stub.close(),
  };
}

function adapter(options: OpenAiModelOptions, watched: boolean): AdapterUnderTest<OpenAiWire> {
  return {
    wire: openWire,
    watched,
    model: ({ baseUrl }, limits) =>
      openAiModel({ apiKey: 'canary-key-1234', baseUrl, ...options, ...limits }),
  };
}

describeAdapter('Chat Completions', adapter({ api: 'chat' }, false));
describeAdapter('Chat Completions, streamed', adapter({ api: 'chat' }, true));
describeAdapter('Responses', adapter({ api: 'responses' }, false));
describeAdapter('Responses, streamed', adapter({ api: 'responses' }, true));

const anthropic = (watched: boolean): AdapterUnderTest<OpenAiWire> => ({
  wire: openAnthropicWire,
  watched,
  model: ({ baseUrl }, limits) => anthropicModel({ apiKey: 'canary-key-1234', baseUrl, ...limits }),
});

/** There, the filter and the quota have different words. */
async function openAnthropicWire(): Promise<OpenAiWire> {
  const wire = await openWire();
  return Object.defineProperties(
    { ...wire },
    {
      ...Object.getOwnPropertyDescriptors(wire),
      script: { value: (scenes: readonly Scene[]) => wire.script(scenes.map(toAnthropic)) },
    },
  );
}

function toAnthropic(scene: Scene): Scene {
  const refuse = (message: string): Scene => ({ type: 'error', status: 400, error: { message } });
  if (scene.type === 'reply' && scene.finish === 'filtered') {
    return refuse('Output blocked by content filtering policy');
  }
  if (scene.type === 'error' && scene.error?.code === 'insufficient_quota') {
    return refuse('Your credit balance is too low to access the Anthropic API.');
  }
  return scene;
}

describeAdapter('Messages', anthropic(false));
describeAdapter('Messages, streamed', anthropic(true));

const KEY = 'canary-key-1234';

/** A real provider of the AI SDK, and what it loses of an answer. */
interface SdkProvider {
  readonly create: (baseURL: string) => AiSdkLanguageModel;
  readonly lacks?: AdapterUnderTest['lacks'];
}

const sdkProviders: Readonly<Record<string, SdkProvider>> = {
  'v2: openai-compatible': {
    create: (baseURL) =>
      createV2({ name: 'stub', baseURL, apiKey: KEY, includeUsage: true })('stub'),
    lacks: ['refused'],
  },
  'v3: OpenAI, Chat Completions': {
    create: (baseURL) => createOpenAI({ baseURL, apiKey: KEY }).chat('stub'),
  },
  'v3: OpenAI, Responses': {
    create: (baseURL) => createOpenAI({ baseURL, apiKey: KEY }).responses('stub'),
    lacks: ['refused'],
  },
  'v3: Anthropic': {
    create: (baseURL) => createAnthropic({ baseURL, apiKey: KEY })('claude-sonnet-4-6'),
    lacks: ['rubbish', 'usage'],
  },
  'v4: openai-compatible': {
    create: (baseURL) =>
      createV4({ name: 'stub', baseURL, apiKey: KEY, includeUsage: true })('stub'),
  },
};

for (const [name, { create, lacks = [] }] of Object.entries(sdkProviders)) {
  for (const watched of [false, true]) {
    describeAdapter(`AI SDK ${name}${watched ? ', streamed' : ''}`, {
      wire: name.includes('Anthropic') ? openAnthropicWire : openWire,
      watched,
      lacks,
      model: ({ baseUrl }, { timeoutMs, idleMs }) =>
        aiSdkModel(create(baseUrl), { timeout: timeoutMs, idleTimeout: idleMs }),
    });
  }
}
