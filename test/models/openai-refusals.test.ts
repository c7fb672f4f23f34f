import { expect, test } from 'vitest';
import type { ModelRequest } from '../../src/models/model.js';
import { listChatParameters } from '../../src/models/openai/chat/index.js';
import { findRefused } from '../../src/models/wire/refusals.js';
import { createChatRequest } from '../../src/models/openai/chat/request.js';
import { OPTIMISTIC } from '../../src/models/known-models.js';
import { request } from './support.js';

const tool = { name: 'read_file', description: 'Reads.', parameters: { type: 'object' } };
const strict = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
};

/** A request with every feature. */
const full = request({
  tools: [tool],
  toolChoice: 'required',
  responseFormat: { name: 'answer', schema: { type: 'object' } },
  logprobs: { top: 5 },
  settings: { temperature: 0.2, top_p: 1, maxOutputTokens: 50, stop: ['x'], seed: 7 },
});

function refused(
  status: number,
  error: unknown,
  base: ModelRequest = full,
  role: 'system' | 'developer' = 'system',
): string | null {
  const capabilities = { ...OPTIMISTIC, systemRole: role };
  const wire = createChatRequest(base, { stream: true, capabilities });
  const failure = { status, headers: new Headers(), error };
  return findRefused(listChatParameters(base, wire), failure);
}

function unsupported(param: string, message: string, code = 'unsupported_value'): object {
  return { message, type: 'invalid_request_error', param, code };
}

// Messages of real servers.
test.each<[string, number, unknown, string]>([
  [
    'OpenAI',
    400,
    unsupported(
      'temperature',
      "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    ),
    'settings.temperature',
  ],
  [
    'OpenAI',
    400,
    unsupported(
      'top_p',
      "Unsupported parameter: 'top_p' is not supported with this model.",
      'unsupported_parameter',
    ),
    'settings.top_p',
  ],
  [
    'OpenAI',
    400,
    unsupported(
      'messages[0].role',
      "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    ),
    'role:system',
  ],
  [
    'OpenAI',
    400,
    unsupported(
      'stream',
      'Your organization must be verified to stream this model. Please go to: https://example.com.',
    ),
    'stream',
  ],
  [
    'OpenAI',
    400,
    unsupported(
      'response_format',
      "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
      '',
    ),
    'response_format:json_schema',
  ],
  [
    'OpenAI',
    403,
    { message: 'You are not allowed to request logprobs from this model', param: null, code: null },
    'logprobs',
  ],
  [
    'OpenAI',
    400,
    unsupported(
      'top_logprobs',
      "Unsupported parameter: 'top_logprobs' is not supported with this model.",
      'unsupported_parameter',
    ),
    'logprobs',
  ],
  [
    'OpenAI',
    400,
    unsupported(
      'tool_choice',
      "Unsupported value: 'tool_choice' does not support 'required' with this model.",
    ),
    'tool_choice:required',
  ],
  [
    'Azure',
    400,
    {
      message: 'Unrecognized request argument supplied: max_completion_tokens',
      param: null,
      code: null,
    },
    'max_completion_tokens',
  ],
  [
    'Azure',
    400,
    { message: 'Unrecognized request argument supplied: stream_options' },
    'stream_options',
  ],
  [
    'vLLM',
    400,
    {
      message:
        "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted', 'input': 50}]",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
    'max_completion_tokens',
  ],
  [
    'vLLM',
    400,
    { message: 'System role not supported', type: 'BadRequestError', param: null, code: 400 },
    'role:system',
  ],
  [
    'llama-cpp-python',
    500,
    {
      message:
        "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema', 'ctx': {'expected': \"'text' or 'json_object'\"}}\n\n  File \"app.py\", line 376",
      param: null,
    },
    'response_format:json_schema',
  ],
  ['a template', 400, 'Only user and assistant roles are supported!', 'role:system'],
  [
    'a template without a system role',
    400,
    'Conversation roles must alternate user/assistant/user/assistant/...',
    'role:system',
  ],
  [
    'Mistral',
    422,
    {
      detail: [
        {
          type: 'extra_forbidden',
          loc: ['body', 'max_completion_tokens'],
          msg: 'Extra inputs are not permitted',
          input: 50,
        },
      ],
    },
    'max_completion_tokens',
  ],
  [
    'Mistral',
    422,
    {
      message: {
        detail: [
          {
            type: 'extra_forbidden',
            loc: ['body', 'seed'],
            msg: 'Extra inputs are not permitted',
            input: 7,
          },
        ],
      },
      param: null,
      code: null,
    },
    'settings.seed',
  ],
  [
    'Mistral by a proxy',
    422,
    {
      message:
        '{"detail":[{"type":"extra_forbidden","loc":["body","logprobs"],"msg":"Extra inputs are not permitted"}]}'.replaceAll(
          '"',
          '\\"',
        ),
      code: '1000',
    },
    'logprobs',
  ],
  [
    'llama.cpp',
    400,
    {
      code: 400,
      message: 'logprobs is not supported with tools + stream',
      type: 'invalid_request_error',
    },
    'stream',
  ],
  [
    'llama.cpp',
    500,
    { code: 500, message: 'Unsupported param: logprobs', type: 'server_error' },
    'logprobs',
  ],
  [
    'llama.cpp',
    400,
    { message: 'JSON schema conversion failed:\nUnrecognized schema: {"const2":1}' },
    'response_format:json_schema',
  ],
  ['LM Studio', 400, "'response_format.type' must be 'text'", 'response_format:json_schema'],
  [
    'DeepSeek',
    400,
    {
      message: 'This response_format type is unavailable now',
      type: 'invalid_request_error',
      param: null,
      code: 'invalid_request_error',
    },
    'response_format:json_schema',
  ],
  [
    'Gemini',
    400,
    {
      code: 400,
      message: 'Logprobs is not enabled for models/gemini-2.5-pro',
      status: 'INVALID_ARGUMENT',
    },
    'logprobs',
  ],
  [
    'Gemini',
    400,
    { message: 'Invalid JSON payload received. Unknown name "seed": Cannot find field.' },
    'settings.seed',
  ],
  [
    'Groq',
    400,
    {
      message: "property 'seed' is unsupported, did you mean 'stop'?",
      type: 'invalid_request_error',
    },
    'settings.seed',
  ],
  [
    'Groq',
    400,
    { message: 'The model only supports response formats: [json text].' },
    'response_format:json_schema',
  ],
  ['Anthropic', 400, { message: "role 'system' is not supported on this model" }, 'role:system'],
])(
  '%s with status %i refuses the parameter that it names (%#)',
  (_name, status, error, parameter) => {
    expect(refused(status, error)).toBe(parameter);
  },
);

test('recognizes a refused developer role', () => {
  const message =
    'Failed to deserialize the JSON body: messages[0].role: unknown variant `developer`, expected one of `system`, `user`';
  expect(refused(422, { message }, full, 'developer')).toBe('role:developer');
  expect(refused(422, { message: message.replaceAll('developer', 'tool') })).toBeNull();
});

test('drops strict mode before it drops the schema', () => {
  const base = { ...full, responseFormat: { name: 'a', schema: strict } };
  const error = unsupported(
    'response_format',
    "Invalid schema for response_format 'a': 'oneOf' is not permitted.",
    '',
  );
  expect(refused(400, error, base)).toBe('response_format:strict');
  const again: ModelRequest = { ...base, without: ['response_format:strict'] };
  expect(refused(400, error, again)).toBe('response_format:json_schema');
  const whole = unsupported(
    'response_format',
    "'response_format' of type 'json_schema' is not supported.",
    '',
  );
  expect(refused(400, whole, base)).toBe('response_format:json_schema');
});

test.each([
  'response_format.type must be json_schema or text',
  "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
])('drops plain JSON at "%s"', (message) => {
  const base: ModelRequest = { ...full, without: ['response_format:json_schema'] };
  expect(refused(400, { message, param: 'messages' }, base)).toBe('response_format:json_object');
});

test.each<[string, number, unknown]>([
  [
    'a value out of range',
    400,
    unsupported(
      'temperature',
      "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
      'decimal_above_max_value',
    ),
  ],
  [
    'a value of a wrong type',
    422,
    {
      detail: [
        { type: 'float_type', loc: ['body', 'temperature'], msg: 'Input should be a valid number' },
      ],
    },
  ],
  [
    'what was not sent',
    400,
    unsupported(
      'reasoning_effort',
      "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
      'unsupported_parameter',
    ),
  ],
  [
    'a tool',
    400,
    unsupported(
      'tools[0].function.parameters',
      "Invalid schema for function 'read_file': 'temperature' is not permitted.",
      'invalid_function_parameters',
    ),
  ],
  ['tools as such', 400, { message: 'registry.ollama.ai/library/gemma:2b does not support tools' }],
  [
    'a flag of the server',
    400,
    {
      message:
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    },
  ],
  [
    'the prompt',
    400,
    {
      code: 'context_length_exceeded',
      message: 'maximum context length is 10 tokens; max_completion_tokens is not supported beyond',
    },
  ],
  [
    'the account',
    400,
    { code: 'insufficient_quota', message: "'temperature' is not supported for free" },
  ],
  ['the key', 401, { message: "Unsupported parameter: 'temperature'" }],
  ['the rate', 429, { message: "'stream' is not available now" }],
  ['a key without permission', 403, { message: "'stream' is not allowed for this key" }],
  ['a server in trouble', 500, { message: 'Unexpected error in the stream of the model' }],
  ['a server that is down', 503, { message: "'stream' is not available" }],
  [
    'an image',
    400,
    { message: 'Invalid content type. image_url is only supported by certain models.' },
  ],
  ['nothing in particular', 400, 'Bad request'],
])('an error about %s refuses no parameter', (_name, status, error) => {
  expect(refused(status, error)).toBeNull();
});

test('never drops the output limit, and renames it only once', () => {
  const error = { message: 'Unrecognized request argument supplied: max_tokens' };
  const once: ModelRequest = { ...full, without: ['max_completion_tokens'] };
  expect(refused(400, error, once)).toBeNull();
  const own = request({ settings: { max_tokens: 5 } });
  expect(refused(400, error, own)).toBe('settings.max_tokens');
});
