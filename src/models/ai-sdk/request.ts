import type {
  LanguageModelV3CallOptions,
  LanguageModelV3FilePart,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultPart,
} from '@ai-sdk/provider';
import { type JsonObject, isObject, parseJson, quoteLargeIntegers } from '../../core/text/json.js';
import type { Attachment, PromptMessage } from '../../core/transcript/messages.js';
import type { ModelRequest, ResponseSchema } from '../model.js';
import { type AttachedData, createPart } from '../wire/attachment-parts.js';
import {
  EMPTY_MESSAGE,
  EMPTY_RESULT,
  type Terms,
  composeInstructions,
  isLeftOut,
  selectTools,
  toSchemaName,
} from '../wire/content.js';
import {
  type AssistantPromptMessage,
  NO_REPLAY,
  type Replay,
  getReplayedItems,
} from '../wire/opaque-fields.js';
import {
  type SentParameter,
  formatParameter,
  isStrictSchema,
  namedParameter,
  settingParameter,
  toolChoice,
} from '../wire/refusals.js';

/** The versions of the AI SDK's specification of a language model: of `ai` 5, 6, and 7. */
type Specification = 'v2' | 'v3' | 'v4';

type AssistantPart = Extract<LanguageModelV3Message, { role: 'assistant' }>['content'][number];
type UserPart = Extract<LanguageModelV3Message, { role: 'user' }>['content'][number];

/** What a request is written for, and the data to which it refers. */
export interface Writing {
  readonly specification: Specification;
  /** The provider's name, such as `openai`, under which it looks for its options. */
  readonly provider: string;
  /** Further options of providers, by their names. */
  readonly given: Readonly<Record<string, JsonObject>>;
  readonly terms: Terms;
  readonly data: AttachedData;
  readonly replay: Replay;
}

/** Returns true for a provider of Anthropic's API, which has rules of its own. */
export function isAnthropic({ provider }: Pick<Writing, 'provider'>): boolean {
  return provider.includes('anthropic');
}

/**
 * Writes a request as the options of a call. They are in the form of version 3; where the versions
 * differ, in files, they are in that of the model.
 */
export function createCallOptions(
  request: ModelRequest,
  writing: Writing,
): LanguageModelV3CallOptions {
  const { terms } = writing;
  const { tools = [], tool_choice: choice } = selectTools(request.tools, request, terms);
  const isReplayed = !terms.without.includes('provider_items');
  const replay = isReplayed ? writing.replay : NO_REPLAY;
  return {
    ...createSettings(request, writing),
    prompt: createPrompt(request, { ...writing, replay }),
    ...createFormat(request, terms),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters: inputSchema }) => {
        return { type: 'function', name, description, inputSchema } as const;
      }),
      ...(choice !== undefined && { toolChoice: { type: choice } }),
    }),
  };
}

/** Lists what a request sends that a server may refuse, with the names that servers use. */
export function listParameters(request: ModelRequest, { terms, replay }: Writing) {
  const { settings, messages, responseFormat } = request;
  const { tools = [], tool_choice: choice } = selectTools(request.tools, request, terms);
  const hasItems = messages.some(
    (message) => message.role === 'assistant' && getReplayedItems(message, replay) !== undefined,
  );
  const format = terms.accepts.responseFormat;
  const names = Object.keys(settings).filter(
    (name) => !OWN_SETTINGS.has(name) && !isLeftOut(name, terms),
  );
  return [
    ...(terms.without.includes('stream') ? [] : [namedParameter('stream', 'stream(?:ing)?')]),
    ...(hasItems && !terms.without.includes('provider_items') ? [PROVIDER_ITEMS] : []),
    ...(responseFormat && format !== 'none' ? listFormats(responseFormat, { format, terms }) : []),
    ...(tools.length > 0 && choice ? [toolChoice(choice)] : []),
    ...names.map((name) => ({ ...settingParameter(toWireName(name)), ...ofSetting(name) })),
  ] satisfies readonly SentParameter[];
}

/** The names of a form of answers in the APIs of all providers. */
const FORMAT = /^(?:response_format|text|output_config)\b/;

function listFormats(
  { schema }: ResponseSchema,
  { format, terms }: { readonly format: 'json_schema' | 'json_object'; readonly terms: Terms },
): readonly SentParameter[] {
  const whole = formatParameter(format);
  const any = { ...whole, param: FORMAT, names: `${whole.names}|\\boutput_config\\b` };
  if (format === 'json_object' || !isStrict(schema, terms)) return [any];
  return [{ ...any, parameter: 'response_format:strict', names: '\\bstrict\\b' }, any];
}

function isStrict(schema: JsonObject, { without }: Terms): boolean {
  return isStrictSchema(schema) && !without.includes('response_format:strict');
}

const PROVIDER_ITEMS: SentParameter = {
  parameter: 'provider_items',
  param: /signature|reasoning|thinking|^input/,
  names: '\\b(?:thought_?)?signature\\b|\\breasoning (?:items?|content)\\b|\\bthinking blocks?\\b',
  also: /\bitem\b.{0,80}\b(?:not found|required)|thinking\W{1,2} blocks?.{0,80}(?:cannot be modified|must remain)/i,
};

function ofSetting(name: string): Pick<SentParameter, 'parameter'> {
  return { parameter: `settings.${name}` };
}

/** Servers call `reasoningEffort` `reasoning_effort`. */
function toWireName(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Settings that a server cannot refuse by their names. */
const OWN_SETTINGS = new Set(['maxOutputTokens', 'nativeTools']);

/** The settings for which the AI SDK has options of its own, by the names that agents use. */
const STANDARD: Readonly<Record<string, keyof LanguageModelV3CallOptions>> = {
  temperature: 'temperature',
  maxOutputTokens: 'maxOutputTokens',
  top_p: 'topP',
  top_k: 'topK',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  seed: 'seed',
};

/** Returns the settings: the AI SDK's own, and all others as options of the provider. */
function createSettings(
  { settings, responseFormat }: ModelRequest,
  { specification, provider, given, terms }: Writing,
): Omit<LanguageModelV3CallOptions, 'prompt'> {
  const {
    nativeTools: _native,
    stop,
    stop_sequences: sequences = stop,
    parallel_tool_calls: parallel,
    reasoning_effort: effort,
    service_tier: serviceTier,
    logit_bias: logitBias,
    ...others
  } = Object.fromEntries(Object.entries(settings).filter(([name]) => !isLeftOut(name, terms)));
  const entries = Object.entries(others);
  const standard = entries.flatMap(([name, value]) => {
    const option = STANDARD[name];
    return option === undefined ? [] : [[option, value] as const];
  });
  const own: JsonObject = {
    ...Object.fromEntries(entries.filter(([name]) => STANDARD[name] === undefined)),
    ...(effort !== undefined && specification !== 'v4' && { reasoningEffort: effort }),
    ...(serviceTier !== undefined && { serviceTier }),
    ...(logitBias !== undefined && { logitBias }),
    ...(typeof parallel === 'boolean' &&
      (provider === 'anthropic'
        ? { disableParallelToolUse: !parallel }
        : { parallelToolCalls: parallel })),
  };
  const isLoose =
    responseFormat !== undefined &&
    terms.accepts.responseFormat === 'json_schema' &&
    !isStrict(responseFormat.schema, terms);
  // Since version 3, providers of OpenAI's APIs demand strict schemas unless told otherwise.
  const loose = isLoose && specification !== 'v2' && { strictJsonSchema: false };
  const merged = { ...loose, ...given[provider], ...own };
  const all = { ...given, ...(Object.keys(merged).length > 0 && { [provider]: merged }) };
  return {
    ...Object.fromEntries(standard),
    ...(sequences !== undefined && { stopSequences: [sequences].flat().map(String) }),
    ...(effort !== undefined && specification === 'v4' && { reasoning: effort }),
    ...(Object.keys(all).length > 0 && { providerOptions: toProviderOptions(all) }),
  };
}

type ProviderOptions = NonNullable<LanguageModelV3CallOptions['providerOptions']>;

/** Returns options of providers by their names, as JSON. */
function toProviderOptions(options: JsonObject): ProviderOptions {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both are JSON
  return options as ProviderOptions;
}

function createFormat(
  { responseFormat }: ModelRequest,
  { accepts }: Terms,
): Pick<LanguageModelV3CallOptions, 'responseFormat'> {
  if (responseFormat === undefined || accepts.responseFormat === 'none') return {};
  if (accepts.responseFormat === 'json_object') return { responseFormat: { type: 'json' } };
  const { schema } = responseFormat;
  return { responseFormat: { type: 'json', name: toSchemaName(responseFormat), schema } };
}

/** Marks the end of a prefix that Anthropic caches; other providers ignore it. */
const CACHED = { providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } };

/**
 * Writes the instructions and the messages. For Anthropic's models, the instructions and the newest
 * two messages of the user end a prefix to cache.
 */
function createPrompt(request: ModelRequest, writing: Writing): LanguageModelV3Prompt {
  const { terms } = writing;
  const instructions = composeInstructions(request, terms);
  const prompt: LanguageModelV3Prompt =
    instructions.trim() === '' ? [] : [{ role: 'system', content: instructions }];
  const names = new Map<string, CallName>();
  for (const message of request.messages) {
    const written = createMessage(message, writing, names);
    const last = prompt.at(-1);
    if (written?.role === 'tool' && last?.role === 'tool') last.content.push(...written.content);
    else if (written !== undefined) prompt.push(written);
  }
  if (!isAnthropic(writing) || terms.without.includes('cache_control')) return prompt;
  const ofUser = prompt.filter(({ role }) => role === 'user' || role === 'tool').slice(-2);
  return prompt.map((one) =>
    one.role === 'system' || ofUser.includes(one) ? { ...one, ...CACHED } : one,
  );
}

/** The tool and the id of a call in the prompt, which its result repeats. */
interface CallName {
  readonly toolCallId: string;
  readonly toolName: string;
}

/** Writes a message, and notes its calls in `names`. Returns undefined for a reply without content. */
function createMessage(
  message: PromptMessage,
  writing: Writing,
  names: Map<string, CallName>,
): LanguageModelV3Message | undefined {
  switch (message.role) {
    case 'user': {
      const { text, attachments = [] } = message;
      const files = attachments.map((one) => createFile(one, writing));
      const isBlank = text.trim() === '';
      if (isBlank && files.length > 0) return { role: 'user', content: files };
      const words: UserPart = { type: 'text', text: isBlank ? EMPTY_MESSAGE : text };
      return { role: 'user', content: [...files, words] };
    }
    case 'tool': {
      const { callId, text, attachments = [] } = message;
      const name = names.get(callId) ?? { toolCallId: callId, toolName: 'unknown' };
      const value = text.trim() === '' ? EMPTY_RESULT : text;
      const output = createOutput(value, attachments, writing);
      return { role: 'tool', content: [{ type: 'tool-result', ...name, output }] };
    }
    case 'assistant': {
      const content = createReply(message, writing.replay, names);
      return content.length === 0 ? undefined : { role: 'assistant', content };
    }
  }
}

/** Where the versions differ: the form of bytes and addresses, and of an image in a result. */
const FILE_FORMS = {
  v2: { image: 'media', isTagged: false },
  v3: { image: 'image-data', isTagged: false },
  v4: { image: 'file', isTagged: true },
} as const;

/** Returns a value of a version other than 3 for a place that has the types of version 3. */
function ofVersion(value: unknown): never {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the model has that version
  return value as never;
}

function createFile(
  attachment: Attachment,
  { data, specification }: Pick<Writing, 'data' | 'specification'>,
): LanguageModelV3FilePart {
  const part = createPart(attachment, data);
  const isFile = part.type === 'file';
  const url = isFile ? part.file.file_data : part.type === 'image_url' ? part.image_url.url : '';
  const { isTagged } = FILE_FORMS[specification];
  const filename = isFile && { filename: part.file.filename };
  if (!url.startsWith('data:')) {
    const address = new URL(url);
    const tagged = isTagged ? { type: 'url', url: address } : address;
    return { type: 'file', mediaType: 'image/*', data: ofVersion(tagged) };
  }
  const comma = url.indexOf(',');
  const base64 = url.slice(comma + 1);
  const mediaType = url.slice('data:'.length, comma).replace(';base64', '');
  const tagged = isTagged ? { type: 'data', data: base64 } : base64;
  return { type: 'file', mediaType, ...filename, data: ofVersion(tagged) };
}

function createOutput(
  value: string,
  attachments: readonly Attachment[],
  writing: Writing,
): LanguageModelV3ToolResultPart['output'] {
  const files = attachments.filter((one) => 'blob' in one);
  if (files.length === 0) return { type: 'text', value };
  const { image } = FILE_FORMS[writing.specification];
  const images = files.map((one) => {
    const { data, mediaType } = createFile(one, writing);
    return { type: image, data, mediaType };
  });
  return ofVersion({ type: 'content', value: [{ type: 'text', text: value }, ...images] });
}

/**
 * Returns the parts of a reply. What its provider sent with it stands at its place among the texts
 * and calls. Thoughts at the end are left out, because providers refuse them there.
 */
function createReply(
  message: AssistantPromptMessage,
  replay: Replay,
  names: Map<string, CallName>,
): AssistantPart[] {
  const items = getReplayedItems(message, replay) ?? [];
  const calls = (message.calls ?? []).map((call) => {
    const input = parseJson(quoteLargeIntegers(call.arguments));
    const place = { toolCallId: call.id, toolName: call.name };
    names.set(call.id, place);
    const shown = isObject(input) ? input : { invalid_arguments: call.arguments };
    return { type: 'tool-call', ...place, input: shown } as const;
  });
  const parts: AssistantPart[] = [];
  let at = 0;
  let called = 0;
  for (const { characters, call: index, id, part, ...opaque } of items) {
    if (part !== undefined) parts.push(ofVersion(part));
    else if (typeof characters === 'number') {
      parts.push(...toText(message.text.slice(at, at + characters), opaque));
      at += characters;
    } else if (index === called) {
      const call = calls[called++];
      // Its provider knows a call with options of its own by the id that it gave to the call.
      const own = typeof id === 'string' ? { toolCallId: id } : {};
      if (call !== undefined) {
        names.set(call.toolCallId, {
          toolName: call.toolName,
          toolCallId: call.toolCallId,
          ...own,
        });
        parts.push({ ...call, ...own, ...opaque });
      }
    }
  }
  const all = [...parts, ...toText(message.text.slice(at)), ...calls.slice(called)];
  return all.slice(0, all.findLastIndex(({ type }) => type !== 'reasoning') + 1);
}

function toText(text: string, opaque: JsonObject = {}): AssistantPart[] {
  return text.trim() === '' ? [] : [{ type: 'text', text, ...opaque }];
}
