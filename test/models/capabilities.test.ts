import { describe, expect, test } from 'vitest';
import {
  OPTIMISTIC,
  reduceCapabilities,
  type ModelCapabilities,
  getCapabilities,
} from '../../src/models/known-models.js';
import { createModelCatalog } from '../../src/models/model-catalog.js';
import { rateOf, type ModelEntry } from '../../src/models/model-entry.js';
import { toParameters } from '../../src/models/model.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';

describe('getCapabilities', () => {
  test.each([
    'stub',
    'gpt-4o',
    'gpt-4o-mini',
    'gpt-4.1',
    'gpt-5.2',
    'gpt-5-chat-latest',
    '',
    'o',
    'constructor',
  ])('assumes full support for "%s"', (model) => {
    // OpenAI's models without reasoning refuse reasoning items, and its older ones cannot use
    // computers.
    const reasoningItems = !model.startsWith('gpt-4');
    const computerUse = !model.startsWith('gpt-');
    expect(getCapabilities(model)).toEqual({ ...OPTIMISTIC, reasoningItems, computerUse });
  });

  test.each<[string, Partial<ModelCapabilities>]>([
    ['o1-mini', { systemRole: 'user', temperature: false, responseFormat: 'none', images: false }],
    ['openai/o1-preview-2024-09-12', { systemRole: 'user', logprobs: false }],
    ['o3', { systemRole: 'system', temperature: false, logprobs: false, images: true }],
    ['o3-mini-2025-01-31', { temperature: false, images: false }],
    ['gpt-5', { temperature: false, logprobs: false, responseFormat: 'json_schema' }],
    ['gpt-5-nano-2025-08-07', { temperature: false }],
    ['gpt-4', { responseFormat: 'none', images: false }],
    ['gpt-4-0613', { responseFormat: 'none' }],
    ['gpt-4-turbo', { responseFormat: 'json_object', images: true }],
    ['gpt-4o-2024-05-13', { responseFormat: 'json_object' }],
    ['gpt-4o-2024-08-06', { responseFormat: 'json_schema' }],
    ['ft:gpt-3.5-turbo-0125:me::1', { responseFormat: 'json_object' }],
    ['deepseek-chat', { responseFormat: 'json_object', maxTokensParameter: 'max_tokens' }],
    ['deepseek-reasoner', { logprobs: false }],
    ['anthropic/claude-sonnet-4-6', { responseFormat: 'none', logprobs: false }],
    ['llama3.2:3b', { maxTokensParameter: 'max_tokens', responseFormat: 'json_schema' }],
    ['mistral-small-latest', { maxTokensParameter: 'max_tokens' }],
    ['Qwen/Qwen2.5-7B-Instruct', { maxTokensParameter: 'max_tokens' }],
  ])('knows the limits of %s', (model, expected) => {
    expect(getCapabilities(model)).toMatchObject(expected);
  });

  test('prefers overrides to the table, field by field', () => {
    expect(getCapabilities('o3', { logprobs: true })).toMatchObject({
      logprobs: true,
      temperature: false,
    });
  });
});

describe('reduceCapabilities', () => {
  test('falls back from role to role, down to the user', () => {
    const developer = { ...OPTIMISTIC, systemRole: 'developer' as const };
    expect(reduceCapabilities(developer, []).systemRole).toBe('developer');
    expect(reduceCapabilities(developer, ['role:developer']).systemRole).toBe('system');
    expect(reduceCapabilities(OPTIMISTIC, ['role:system']).systemRole).toBe('user');
    expect(reduceCapabilities(developer, ['role:developer', 'role:system']).systemRole).toBe(
      'user',
    );
  });

  test('falls back from schema to JSON to nothing', () => {
    const formatOf = (...refused: string[]): string =>
      reduceCapabilities(OPTIMISTIC, toParameters(refused)).responseFormat;
    expect(formatOf('response_format:strict')).toBe('json_schema');
    expect(formatOf('response_format:json_schema')).toBe('json_object');
    expect(formatOf('response_format:json_object')).toBe('json_schema');
    expect(formatOf('response_format:json_schema', 'response_format:json_object')).toBe('none');
  });

  test('switches to the other name of the output limit', () => {
    expect(reduceCapabilities(OPTIMISTIC, ['max_completion_tokens']).maxTokensParameter).toBe(
      'max_tokens',
    );
    const local = getCapabilities('llama3.2');
    expect(reduceCapabilities(local, ['max_completion_tokens']).maxTokensParameter).toBe(
      'max_tokens',
    );
  });
});

test('reads recorded parameters, and drops unknown ones', () => {
  expect(toParameters(['logprobs', 'settings.seed', 'from_a_later_version'])).toEqual([
    'logprobs',
    'settings.seed',
  ]);
});

describe('the capabilities of a resolved model', () => {
  function resolved(entries: Record<string, ModelEntry>, name: string): ModelCapabilities {
    return createModelCatalog(entries, { OPENAI_API_KEY: 'key' }).resolve(name).capabilities;
  }

  test("are those of the provider's name for it, unless the config overrides them", () => {
    // Only the Responses API has tools of the provider.
    const chat = { nativeTools: false, computerUse: false };
    expect(resolved({}, 'o3')).toEqual({ ...getCapabilities('o3'), ...chat });
    const thinker = { model: 'o3', api: 'responses' } as const;
    expect(resolved({ thinker }, 'thinker')).toEqual(getCapabilities('o3'));
    const mine = { baseUrl: 'http://127.0.0.1:1/v1', capabilities: { logprobs: false } };
    expect(resolved({ mine }, 'mine')).toEqual({ ...OPTIMISTIC, logprobs: false, ...chat });
  });

  test('are few for the demo model', () => {
    expect(resolved({}, 'demo')).toMatchObject({ responseFormat: 'none', logprobs: false });
  });

  test.each<[unknown, RegExp]>([
    [
      { logprob: true },
      /^models\.mine: capabilities: "logprob" is not an option; did you mean logprobs\?$/,
    ],
    [{ logprobs: 'yes' }, /^models\.mine: capabilities\.logprobs: expected boolean, got "yes"$/],
    [{ systemRole: 'assistant' }, /systemRole: expected one of "system"\|"developer"\|"user", got/],
    [{ responseFormat: null }, /responseFormat: expected one of "json_schema"\|.*, got null$/],
    ['all', /^models\.mine: capabilities: expected object, got a text$/],
    [null, /^models\.mine: capabilities: expected object, got null$/],
  ])('cannot be %j: the config is refused', (capabilities, message) => {
    const entries = { mine: { capabilities } as unknown as ModelEntry };
    expect(() => createModelCatalog(entries, {})).toThrow(message);
  });

  test('are refused without a key that is in place of its variable', () => {
    const create = () => createModelCatalog({ mine: { apiKeyEnv: 'sk-hunter2' } }, {});
    expect(create).toThrow(/^models\.mine: apiKeyEnv: (?!.*hunter2).*not the key$/);
  });
});

describe('the rate of a model', () => {
  test.each<[unknown, string]>([
    [{}, 'models.mine: rate: expected `requests`, `tokens`, or both, such as { requests: 60'],
    [{ requests: 0 }, 'models.mine: rate.requests: expected a number above 0, got 0'],
    [{ tokens: '9' }, 'models.mine: rate.tokens: expected a number above 0, got "9"'],
    [{ requests: 1, per: 10 }, 'rate.per: expected a whole number of ms or words such as'],
    [{ rpm: 5 }, 'rate: "rpm" is not an option'],
  ])('cannot be %j', (rate, message) => {
    const call = async () => await Promise.reject(new Error('never called'));
    for (const entry of [{ rate }, { rate, call }]) {
      const entries = { mine: entry as unknown as ModelEntry };
      expect(() => createModelCatalog(entries, {})).toThrow(message);
    }
  });

  test('is one minute, unless it names a time', () => {
    expect(rateOf({ rate: { requests: 60 } })).toEqual({ requests: 60, perMs: 60_000 });
    expect(rateOf({ rate: { tokens: 5, per: '1 day' } })).toEqual({ tokens: 5, perMs: 86_400_000 });
    expect(rateOf({})).toBeNull();
  });
});

describe('the times of a model', () => {
  test.each<[object, string]>([
    [{ timeoutMs: 5 }, 'models.mine: "timeoutMs" is not an option; did you mean timeout?'],
    [{ timeout: '2 hours' }, 'timeout: expected a whole number of ms or words such as'],
    [{ idleTimeout: 0 }, 'idleTimeout: expected a whole number of ms or words such as'],
  ])('cannot be %j', (entry, message) => {
    expect(() => createModelCatalog({ mine: entry }, {})).toThrow(message);
  });

  test.each<ModelEntry>([
    { timeout: '10 minutes', idleTimeout: 30_000 },
    { api: 'anthropic', idleTimeout: '1 minute' },
  ])('can be %j', (mine) => {
    expect(createModelCatalog({ mine }, {}).resolve('mine').name).toBe('mine');
  });
});

test.each<[unknown, string]>([
  [
    [replyText('Hello.')],
    'got a list; a list of replies becomes a model with scriptedModel([…]) of perdure/testing',
  ],
  ['gpt-5', "got a text; write { model: '…' } with the provider's name of it"],
  [scriptedModel, 'got a function'],
  [null, 'got null'],
])('an entry that is no object is refused with what it is: %o', (entry, got) => {
  expect(() => createModelCatalog({ mine: entry as never }, {})).toThrow(
    `models.mine: expected a model, or an object with its options, ${got}`,
  );
});
