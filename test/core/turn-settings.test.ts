import { expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { collectSettings } from '../../src/cli/input/option-parsers.js';
import {
  credentialProblem,
  settingsMisfit,
  turnSettingsProblem,
} from '../../src/core/input/turn-settings.js';
import { config } from '../support/scripts.js';

test.each([
  'api_key',
  'apiKey',
  'openai-api-key',
  'Authorization',
  'auth_token',
  'client_secret',
  'password',
  'extra_headers',
  'headers',
  'default_headers',
  'extra_query',
  'base_url',
  'baseURL',
  'api_base',
  'endpoint',
  'organization',
])('no setting may be called %s', (name) => {
  expect(credentialProblem(name)).toMatch(/^expected no credential or address/);
  expect(turnSettingsProblem({ [name]: 'canary' })).toMatch(`settings.${name}: expected no`);
  expect(turnSettingsProblem({ [name]: 'canary' })).not.toContain('canary');
  expect(() => defineAgent({ name: 'a', instructions: 'x', callSettings: [name] })).toThrow(
    /callSettings.*expected no credential or address/,
  );
});

test.each([
  'temperature',
  'maxOutputTokens',
  'prompt_cache_key',
  'max_tokens',
  'user',
  'metadata',
  'stop',
])('a setting may be called %s', (name) => {
  expect(credentialProblem(name)).toBeNull();
});

test.each(['model', 'messages', 'tools', 'stream', 'nativeTools'])(
  'an agent cannot let messages set %s',
  (name) => {
    const options = { name: 'a', instructions: 'x', callSettings: [name] };
    expect(() => defineAgent(options)).toThrow(
      /callSettings.*expected no setting that perdure sets/,
    );
  },
);

test.each<[unknown, RegExp | null]>([
  [undefined, null],
  [{}, null],
  [{ temperature: 0 }, null],
  ['x', /^settings: expected an object, got "x"/],
  [[1], /^settings: expected an object/],
  [
    { metadata: { a: 'x'.repeat(4_000) } },
    /^settings: expected at most 4000 characters, got 40\d\d/,
  ],
])('settings %j are checked', (settings, problem) => {
  const found = turnSettingsProblem(settings);
  if (problem === null) expect(found).toBeNull();
  else expect(found).toMatch(problem);
});

test('an agent allows what changes how its model writes, unless it has its own list', () => {
  const { definition } = config();
  expect(settingsMisfit(definition, { temperature: 1, metadata: {} })).toBeNull();
  expect(settingsMisfit(definition, { nativeTools: [] })).toMatch(/^settings\.nativeTools: agent/);
  const none = { ...definition, callSettings: [] };
  expect(settingsMisfit(none, { seed: 1 })).toMatch(/allows none; remove it/);
  expect(settingsMisfit(none, undefined)).toBeNull();
  const limited = { ...definition, settings: { maxOutputTokens: 9 } };
  expect(settingsMisfit(limited, { maxOutputTokens: 9 })).toBeNull();
  expect(settingsMisfit(limited, { maxOutputTokens: 10 })).toMatch(
    /from 1 to 9, the agent's own, got 10/,
  );
  expect(settingsMisfit(definition, { maxOutputTokens: 'many' })).toMatch(
    /a whole number from 1, got/,
  );
});

test('the command reads numbers, JSON, and texts', () => {
  const given = [
    'temperature=0.2',
    'reasoning_effort=low',
    'metadata={"a":"b"}',
    'user:="7"',
    'stop=',
  ];
  expect(given.reduce((before, one) => collectSettings(one, before), {})).toEqual({
    temperature: 0.2,
    reasoning_effort: 'low',
    metadata: { a: 'b' },
    user: '7',
    stop: '',
  });
  expect(() => collectSettings('temperature')).toThrow('Expected NAME=TEXT or NAME:=JSON.');
});
