import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { collectSettings } from '../../src/cli/input/option-parsers.js';
import {
  credentialProblem,
  settingsMisfit,
  turnSettingsProblem,
} from '../../src/core/input/turn-settings.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import type { GraphOptions } from '../../src/graphs/graph-options.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { config } from '../support/scripts.js';

const readTool = defineTool({
  name: 'read',
  description: 'x',
  effect: 'read',
  input: z.object({}),
  execute: async () => 'x',
});
const state = z.object({ answer: z.string().default('') });
const nodes: GraphOptions<typeof state>['nodes'] = ({ run }) => ({
  done: run({ run: async () => ({ answer: 'x' }) }),
});

/** Every way in which settings get to a model, with one setting. */
const WAYS: Readonly<Record<string, (name: string, value?: unknown) => unknown>> = {
  'settings of an agent': (name, value = 'canary') =>
    defineAgent({ name: 'a', instructions: 'x', settings: { [name]: value } as never }),
  'settings of a prompt': (name, value = 'canary') =>
    defineAgent({
      name: 'a',
      instructions: 'x',
      prompts: { p: { text: 'x', settings: { [name]: value } as never } },
    }),
  callSettings: (name) => defineAgent({ name: 'a', instructions: 'x', callSettings: [name] }),
  'settings of a graph': (name, value = 'canary') =>
    defineGraph({ name: 'g', state, nodes, settings: { [name]: value } as never }).wire({
      start: 'done',
      edges: { done: 'end' },
    }),
  'settings of planAndExecute': (name, value = 'canary') =>
    planAndExecute({
      name: 'p',
      instructions: 'x',
      tools: [readTool],
      settings: { [name]: value } as never,
    }),
  'settings of a message': (name, value = 'canary') => {
    const problem = turnSettingsProblem({ [name]: value });
    if (problem !== null) throw new Error(problem);
  },
};
const CREDENTIALS =
  'api_key apiKey openai-api-key OpenAI_API_Key Authorization auth_token access_token client_secret password ' +
  'extra_headers headers default_headers http_headers extra_query base_url baseURL api_base endpoint host ' +
  'organization project cookie x-api-key azure_ad_token aws_secret_access_key fetch';

describe.each(Object.entries(WAYS))('%s', (_way, give) => {
  test.each(CREDENTIALS.split(' '))('may not have %s', (name) => {
    expect(credentialProblem(name)).toMatch(/^expected no credential, address/);
    let fault = '';
    try {
      give(name);
    } catch (error) {
      fault = String(error);
    }
    expect(fault).toContain('expected no credential, address');
    expect(fault).not.toContain('canary');
  });

  test('may have what changes how a model writes', () => {
    expect(() => give('temperature', 0.5)).not.toThrow();
    expect(() => give('prompt_cache_key', 'x')).not.toThrow();
  });
});

test.each(Object.entries(WAYS).filter(([way]) => way !== 'callSettings'))(
  'no credential is deep in the %s',
  (_way, give) => {
    expect(() => give('metadata', { deep: [{ apiKey: 'canary' }] })).toThrow('apiKeyEnv');
    expect(() => give('metadata', { user_token: 'x', key: 'y' })).not.toThrow();
  },
);

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
