import type { Parameter } from './parameters.js';

/** The role under which a model takes its instructions; `user`: they begin the first message. */
export type SystemRole = 'system' | 'developer' | 'user';

/**
 * Whether messages of people may follow each other, and results of tools; `alternating`: only the
 * model's, as chat templates of open weights demand.
 */
export type RoleOrder = 'any' | 'alternating';

/** How far a server keeps a reply to a JSON schema; `json_object`: to JSON; `none`: not at all. */
export type ResponseFormat = 'json_schema' | 'json_object' | 'none';

/** What a model takes, apart from texts and tools. */
export interface Capabilities {
  readonly systemRole: SystemRole;
  readonly roleOrder: RoleOrder;
  /** `temperature` and `top_p`; reasoning models mostly have both fixed. */
  readonly temperature: boolean;
  readonly streaming: boolean;
  /** `tool_choice: 'required'`; without it `auto` is sent. */
  readonly requiredToolChoice: boolean;
  /** The setting `parallel_tool_calls`. */
  readonly parallelTools: boolean;
  readonly responseFormat: ResponseFormat;
  readonly logprobs: boolean;
  /** The name of the output limit; some servers ignore the one that they do not know. */
  readonly maxTokensParameter: 'max_completion_tokens' | 'max_tokens';
  readonly images: boolean;
  /** Files such as PDF as parts of a message. */
  readonly files: boolean;
  /** Responses API: hands out what it thought, encrypted, and takes it back. */
  readonly reasoningItems: boolean;
  /** Responses API: tools that the provider executes, such as `web_search`. */
  readonly nativeTools: boolean;
  /** Responses API: asks for actions on a screen (`computer`, `computer_use_preview`). */
  readonly computerUse: boolean;
}

/**
 * What a modern server that speaks OpenAI's API takes. Of a model that nobody knows the best is
 * hoped: what its server refuses is left out at run time.
 */
export const OPTIMISTIC: Capabilities = {
  systemRole: 'system',
  roleOrder: 'any',
  temperature: true,
  streaming: true,
  requiredToolChoice: true,
  parallelTools: true,
  responseFormat: 'json_schema',
  logprobs: true,
  maxTokensParameter: 'max_completion_tokens',
  images: true,
  files: true,
  reasoningItems: true,
  nativeTools: true,
  computerUse: true,
};

const TEXT_ONLY = { images: false, files: false };

/**
 * Where models fall short of `OPTIMISTIC`; the first row that fits holds. Looked up 2026-11, in
 * documentation and reports that were published up to 2026-09. What depends on more than the model
 * (the reasoning effort, the provider that serves it) is left to the run time.
 *
 * Open weights, and names with a tag as Ollama writes them, take `max_tokens`: Ollama ignores
 * `max_completion_tokens` without a word, and no other server of theirs refuses the older name.
 */
const FAMILIES: readonly (readonly [RegExp, Partial<Capabilities>])[] = [
  [
    /^o1-(mini|preview)(-|$)/,
    {
      systemRole: 'user',
      temperature: false,
      requiredToolChoice: false,
      parallelTools: false,
      responseFormat: 'none',
      logprobs: false,
      ...TEXT_ONLY,
    },
  ],
  [/^o3-mini(-|$)/, { temperature: false, parallelTools: false, logprobs: false, ...TEXT_ONLY }],
  [/^o\d(-|$)/, { temperature: false, parallelTools: false, logprobs: false }],
  [/^gpt-5(-mini|-nano|-pro|-codex)?(-20[\d-]+)?$/, { temperature: false, logprobs: false }],
  [/^gpt-4o-2024-05-13$/, { responseFormat: 'json_object' }],
  [/^gpt-4-(turbo|1106|0125|vision)/, { responseFormat: 'json_object', files: false }],
  [
    /^gpt-4(-0\d{3}|-32k.*)?$/,
    { responseFormat: 'none', parallelTools: false, nativeTools: false, ...TEXT_ONLY },
  ],
  [/^gpt-3\.5(-|$)/, { responseFormat: 'json_object', nativeTools: false, ...TEXT_ONLY }],
  [
    /^deepseek-reasoner$/,
    {
      responseFormat: 'json_object',
      logprobs: false,
      maxTokensParameter: 'max_tokens',
      ...TEXT_ONLY,
    },
  ],
  [
    /^deepseek-(chat|v\d)/,
    { responseFormat: 'json_object', maxTokensParameter: 'max_tokens', ...TEXT_ONLY },
  ],
  // Ignores both without a word; a schema that is not kept to would be taken for one that is.
  [/^claude-/, { responseFormat: 'none', logprobs: false }],
  [
    /:|^(codestral|deepseek|devstral|gemma|glm|granite|kimi|llama|magistral|ministral|mistral|mixtral|olmo|open-mi|phi|pixtral|qwen|qwq|smollm)/,
    { maxTokensParameter: 'max_tokens' },
  ],
];

/** The name without its provider (`openai/gpt-4o`) and without what fine-tuning adds (`ft:gpt-4o:me::1`). */
function baseName(model: string): string {
  const own = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return /^ft:([^:]+)/.exec(own)?.[1] ?? own;
}

/** What the model takes: by the table, and before it by `overrides`, where a field is set. */
export function capabilitiesOf(model: string, overrides: Partial<Capabilities> = {}): Capabilities {
  const name = baseName(model);
  const known = FAMILIES.find(([pattern]) => pattern.test(name))?.[1];
  return {
    ...OPTIMISTIC,
    reasoningItems: thinks(name),
    computerUse: seesScreens(name),
    ...known,
    ...overrides,
  };
}

/** Who does not think refuses to hand out thoughts. */
function thinks(name: string): boolean {
  return !/^(chatgpt-|gpt-3|gpt-4)/.test(name);
}

/** Of OpenAI's: `computer-use-preview`, and the general models from GPT-5.4 on. */
function seesScreens(name: string): boolean {
  return !/^(chatgpt-|gpt-[34]|o\d(-|$)|gpt-5(-|$)|gpt-5\.[0-3](-|$)|codex)/.test(name);
}

const NEXT_ROLES: Readonly<Record<SystemRole, readonly SystemRole[]>> = {
  developer: ['developer', 'system', 'user'],
  system: ['system', 'user'],
  user: ['user'],
};

const NEXT_FORMATS: Readonly<Record<ResponseFormat, readonly ResponseFormat[]>> = {
  json_schema: ['json_schema', 'json_object', 'none'],
  json_object: ['json_object', 'none'],
  none: ['none'],
};

/** What is left of a model's capabilities when its server has refused these parameters. */
export function reducedBy(capabilities: Capabilities, refused: readonly Parameter[]): Capabilities {
  const has = (parameter: Parameter): boolean => refused.includes(parameter);
  const { systemRole, responseFormat, maxTokensParameter: own } = capabilities;
  const other = own === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  return {
    ...capabilities,
    systemRole:
      NEXT_ROLES[systemRole].find((role) => role === 'user' || !has(`role:${role}`)) ?? 'user',
    roleOrder: has('role_order:any') ? 'alternating' : capabilities.roleOrder,
    responseFormat:
      NEXT_FORMATS[responseFormat].find(
        (format) => format === 'none' || !has(`response_format:${format}`),
      ) ?? 'none',
    streaming: capabilities.streaming && !has('stream'),
    requiredToolChoice: capabilities.requiredToolChoice && !has('tool_choice:required'),
    logprobs: capabilities.logprobs && !has('logprobs'),
    maxTokensParameter: has(own) ? other : own,
  };
}
