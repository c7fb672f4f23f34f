import { z } from 'zod';
import type { OptionSchemas } from '../validation/check-options.js';
import type { RequestParameter } from './parameters.js';

/** The role of the instructions; `user`: they precede the text of the first user message. */
export type SystemRole = 'system' | 'developer' | 'user';

/**
 * Whether several user messages, or several tool results, may follow each other. `alternating`:
 * they may not, as required by the chat templates of open weights.
 */
export type RoleOrder = 'any' | 'alternating';

/** How a server constrains a reply: to a JSON schema, to any JSON object, or not at all. */
export type ResponseFormat = 'json_schema' | 'json_object' | 'none';

/** The capabilities of a model, apart from texts and tools. */
export interface ModelCapabilities {
  readonly systemRole: SystemRole;
  readonly roleOrder: RoleOrder;
  /** `temperature` and `top_p`; most reasoning models fix both. */
  readonly temperature: boolean;
  readonly streaming: boolean;
  /** `tool_choice: 'required'`; `auto` is sent if false. */
  readonly requiredToolChoice: boolean;
  /** The setting `parallel_tool_calls`. */
  readonly parallelTools: boolean;
  readonly responseFormat: ResponseFormat;
  readonly logprobs: boolean;
  /** The name of the output limit; some servers silently ignore the other one. */
  readonly maxTokensParameter: 'max_completion_tokens' | 'max_tokens';
  readonly images: boolean;
  /** Files such as PDFs as parts of a message. */
  readonly files: boolean;
  /** Responses API: returns its reasoning encrypted and accepts it in later requests. */
  readonly reasoningItems: boolean;
  /** Responses API: tools that the provider executes, such as `web_search`. */
  readonly nativeTools: boolean;
  /** Responses API: the tools `computer` and `computer_use_preview`. */
  readonly computerUse: boolean;
}

/**
 * The capabilities of a modern server with OpenAI's API. They are assumed for an unknown model: a
 * parameter that its server refuses is omitted at run time.
 */
export const OPTIMISTIC: ModelCapabilities = {
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

/** Returns the capabilities that remain once the server has refused these parameters. */
export function reduceCapabilities(
  capabilities: ModelCapabilities,
  refused: readonly RequestParameter[],
): ModelCapabilities {
  const has = (parameter: RequestParameter): boolean => refused.includes(parameter);
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

/** The capabilities that a config may set. */
export const capabilityOptions = z
  .strictObject({
    systemRole: z.enum(['system', 'developer', 'user']),
    roleOrder: z.enum(['any', 'alternating']),
    temperature: z.boolean(),
    streaming: z.boolean(),
    requiredToolChoice: z.boolean(),
    parallelTools: z.boolean(),
    responseFormat: z.enum(['json_schema', 'json_object', 'none']),
    logprobs: z.boolean(),
    maxTokensParameter: z.enum(['max_completion_tokens', 'max_tokens']),
    images: z.boolean(),
    files: z.boolean(),
    reasoningItems: z.boolean(),
    nativeTools: z.boolean(),
    computerUse: z.boolean(),
  } satisfies OptionSchemas<ModelCapabilities>)
  .partial();
