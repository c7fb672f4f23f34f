import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import { defineGraph } from '../../src/graphs/define-graph.js';

/** What a JavaScript author could write. */
function defineLoosely(changes: Record<string, unknown>): unknown {
  return Reflect.apply(defineAgent, undefined, [{ name: 'a', instructions: 'x', ...changes }]);
}

const helper = defineAgent({ name: 'helper', instructions: 'x' });
describe('defineAgent', () => {
  test('accepts a model that must call a tool and has only its provider’s tools', () => {
    const settings = { nativeTools: [{ type: 'web_search' }] };
    expect(defineLoosely({ toolChoice: 'required', settings })).toMatchObject({
      toolChoice: 'required',
    });
  });

  test('fills in the defaults', () => {
    expect(defineLoosely({})).toMatchObject({
      attempts: null,
      decide: 'tools',
      model: null,
      onInvalid: 'fail',
      onLimit: 'answer',
      onPlainText: 'respond',
      toolCalls: 'parallel',
      toolChoice: 'auto',
      toolExposure: 'all',
    });
    expect(defineLoosely({})).not.toHaveProperty('compaction');
    expect(defineLoosely({ compaction: false })).toHaveProperty('compaction', null);
    expect(defineLoosely({ compaction: { at: 0.9 } })).toHaveProperty('compaction', {
      at: 0.9,
      keep: 0.25,
    });
    expect(defineLoosely({ retrieve: () => [] })).toHaveProperty('retrieve.timeoutMs', 30_000);
    expect(defineLoosely({ forkFrom: ['b', 'a', 'b'] })).toHaveProperty('forkFrom', ['a', 'b']);
    expect(defineLoosely({})).not.toHaveProperty('retentionMs');
    expect(defineLoosely({ retention: '1h' })).toHaveProperty('retentionMs', 3_600_000);
  });

  test.each([
    [
      { output: 'json' },
      'output: expected a zod type, tags({…}), classify([…]), or a function, got "json"; for any JSON, use z.json()',
    ],
    [{ output: null }, 'got null'],
    [{ output: { classes: 3 } }, 'got {"classes":3}'],
    [{ name: 'a b' }, 'agent "a b": name: expected 1 to 64 letters, digits, "_", "-" or "."'],
    [{ instructions: 7 }, 'agent "a": instructions: expected a text or a template, got 7'],
    [{ instruction: 'x' }, /: "instruction" is not an option; did you mean instructions\?$/],
    [
      { temperature: 0 },
      /: "temperature" is not an option; did you mean settings: { temperature: … }\?$/,
    ],
    [{ maxTokens: 9 }, 'did you mean settings: { maxOutputTokens: … }?'],
    [{ topP: 1 }, 'did you mean settings: { top_p: … }?'],
    [{ maxSteps: 5 }, 'did you mean limits: { steps: … }?'],
    [{ maxTurns: 5 }, 'did you mean limits: { steps: … }?'],
    [{ stopWhen: [] }, 'did you mean limits: { steps: … }?'],
    [{ timeout: 5 }, 'did you mean limits: { wall: … }?'],
    [{ system: 'x' }, 'did you mean instructions?'],
    [{ sytem: 'x' }, 'did you mean instructions?'],
    [{ prompt: 'x' }, 'did you mean instructions?'],
    [{ promt: 'x' }, 'did you mean instructions?'],
    [{ max_tokens: 1 }, 'did you mean settings: { maxOutputTokens: … }?'],
    [{ retries: 1 }, 'did you mean attempts?'],
    [{ provider: 'x' }, 'did you mean model?'],
    [{ experimental_context: 1 }, 'the options are '],
    [{ outputGuardrails: [] }, 'the options are '],
    [{ handoffs: [] }, 'did you mean agents?'],
    [{ outputType: {} }, 'did you mean output?'],
    [{ memory: {} }, 'did you mean retrieve and remember?'],
    [{ wibble: 1 }, '"wibble" is not an option; the options are name, instructions, model,'],
    [{ constructor: 1 }, '"constructor" is not an option; the options are name'],
    [
      { model: '' },
      'model: expected the name of a model, or a list of 1 to 8 different names, got ""; omit it to use PERDURE_MODEL',
    ],
    [{ tools: [{}] }, 'tools[0]: expected a tool, got an object; make it with defineTool({…})'],
    [
      { agents: [{}] },
      'agents[0].agent: expected an agent, got undefined; make it with defineAgent',
    ],
    [{ agents: [helper] }, 'agent "helper" has no description'],
    [
      { agents: [{ agent: helper, parentClose: 'x' }] },
      'agents[0].parentClose: expected one of "terminate"|"request_cancel"|"abandon", got "x"',
    ],
    [{ forkFrom: ['a b'] }, 'forkFrom[0]: expected 1 to 64 letters'],
    [{ toolChoice: 'some' }, 'toolChoice: expected one of "auto"|"required"|"none", got "some"'],
    [
      { toolCalls: 'sequentially' },
      'toolCalls: expected one of "parallel"|"sequential"|"first", got "sequentially" (nearest: "sequential")',
    ],
    [{ decide: 'dice' }, 'decide: expected "tools", "schema" or a function, got "dice"'],
    [{ attempts: 101 }, 'attempts: expected number to be <=100, got 101'],
    [{ retrieve: { finds: 1 } }, 'retrieve: "finds" is not an option; did you mean find?'],
    [
      { retrieve: { find: () => [], timeout: 0 } },
      'retrieve.timeout: expected a whole number of ms or words such as',
    ],
    [
      { toolChoice: 'required', tools: [] },
      'toolChoice: expected a tool with `ends: true` for "required", got none',
    ],
    [
      { settings: { stream: false } },
      'settings.stream: expected no such setting, because perdure sets it, got false; replies are streamed',
    ],
    [{ settings: { messages: [] } }, 'settings.messages: expected no such setting'],
    [
      { texts: { repair: 'Again!' } },
      'texts.repair: expected the placeholder {{problem}}, else the model does not learn what is wrong, got "Again!"',
    ],
    [
      { texts: { repair: 'No. {{problem}}' } },
      'texts.repair: expected at least 12 characters before the first placeholder',
    ],
    [
      { texts: { closing: 'End, {{why}}' } },
      'texts.closing: expected no placeholder but {{reason}}, got "End, {{why}}"',
    ],
    [{ texts: { demandCall: 'Call {{tool}}' } }, 'texts.demandCall: expected no placeholder, got'],
    [{ texts: { demandCall: ' ' } }, 'texts.demandCall: expected a text, got only blanks'],
    [{ texts: { closing: '{{' } }, 'texts.closing: at position 0, "{{" does not begin'],
    [{ compaction: true }, 'compaction: expected object, got true'],
    [{ compaction: { at: 0.2 } }, 'compaction: expected `keep` below `at`, got an object'],
    [{ compaction: { keep: 1 } }, 'compaction.keep: expected number to be <1, got 1'],
    [
      { retention: '59 minutes' },
      'agent "a": retention: expected a whole number of ms or words such as "30 seconds" or "2 days", got "59 minutes"; at least 1 hour, at most 36500 days',
    ],
    [{ retention: '101 years' }, 'retention: expected a whole number of ms'],
    [{ retention: 0 }, 'retention: expected a whole number of ms'],
    [{ limits: { step: 1 } }, 'agent "a": limits.step'],
    [{ limits: { stepps: 1 } }, 'run, got "stepps" (nearest: steps); correct the name'],
  ])('refuses %o', (changes, message) => {
    expect(() => defineLoosely(changes)).toThrow(message);
  });

  test('names all faults at once', () => {
    expect(() => defineLoosely({ toolz: [], model: 7 })).toThrow(
      /^agent "a":\n- model: expected the name of a model, or a list of 1 to 8 different names, got 7; omit it to use PERDURE_MODEL\n- "toolz" is not an option; did you mean tools\?$/,
    );
  });
});

describe('defineConfig', () => {
  test('refuses options that it does not have', () => {
    const config = { agents: [], modles: {} };
    expect(() => defineConfig(config)).toThrow(
      'config: "modles" is not an option; did you mean models?',
    );
  });
});

describe('the parts of a configuration', () => {
  const price = { input: 1, output: 2 } as never;

  test.each([
    [{ price }, /^models\.m: price\.cachedInput: missing, expected US dollars/],
    [{ baseUrl: 'localhost:8000/v1' }, /^models\.m: baseUrl: expected an http\(s\) address/],
    [{ baseUrl: 'http://me:cnry@127.0.0.1/v1' }, /^models\.m: baseUrl: expected (?!.*cnry)/],
  ])('are checked before a run starts: models with %j', (entry, fault) => {
    const config = { agents: [], models: { m: entry } };
    expect(() => defineConfig(config)).toThrow(fault);
  });

  const fixed = {
    state: z.object({ list: z.array(z.string()), draft: z.json().optional() }),
    model: 'm',
  };
  const writer = defineAgent({ name: 'writer', instructions: 'x', model: 'm' });
  const alone = defineGraph({
    ...fixed,
    name: 'alone',
    nodes: ({ agent }) => ({
      write: agent({ agent: 'writr', message: () => 'go', save: 'draft' }),
    }),
  }).wire({ start: 'write', edges: { write: { done: 'end', stopped: 'end', failed: 'end' } } });
  const many = defineGraph({
    ...fixed,
    name: 'many',
    nodes: ({ each }) => ({
      all: each({ over: (s) => s.list, agent: 'writr', message: () => 'go', save: 'draft' }),
    }),
  }).wire({ start: 'all', edges: { all: 'end' } });

  test.each([
    [alone, 'write'],
    [many, 'all'],
  ])('include the agents that the nodes of a graph name', (graph, node) => {
    expect(() => defineConfig({ agents: [graph, writer] })).toThrow(
      `config: graph "${graph.name}": node "${node}": agent: expected an agent of the configuration, got "writr" (nearest: "writer"); correct the name, or add the agent to \`agents\``,
    );
  });
});

describe('a setting', () => {
  const made = (settings: object): unknown =>
    defineAgent({ name: 'a', instructions: 'x', settings: settings as never });

  test.each(
    'api_key apiKey API-KEY authorization Authorization extra_headers headers defaultHeaders base_url baseURL organization OpenAI_API_Key password client_secret access_token'.split(
      ' ',
    ),
  )('%s is refused by name, without its value', (name) => {
    const fault = (() => {
      try {
        return made({ [name]: 'sk-cnry-0123456789' });
      } catch (error) {
        return String(error);
      }
    })();
    expect(fault).toContain(name);
    expect(fault).toContain('apiKeyEnv');
    expect(fault).not.toContain('cnry');
  });

  test('is refused at any depth, in a prompt, and in a graph', () => {
    expect(() => made({ metadata: { deep: [{ apiKey: 'x' }] } })).toThrow('apiKeyEnv');
    const prompts = { p: { text: 'x', settings: { api_key: 'x' } as never } };
    expect(() => defineAgent({ name: 'a', instructions: 'x', prompts })).toThrow('apiKeyEnv');
  });

  test.each([
    ['maxTokens', 'write `maxOutputTokens`'],
    ['topP', 'write `top_p`'],
    ['modelName', 'use `model`'],
    ['stopSequences', 'write `stop`'],
    ['providerOptions', 'directly into `settings`'],
  ])('%s of another library is refused with the right name', (name, hint) =>
    expect(() => made({ [name]: 1 })).toThrow(hint),
  );

  test('of the provider is accepted', () => {
    const settings = { maxOutputTokens: 5, max_tokens: 5, top_p: 1, metadata: { user_token: 'x' } };
    expect(() => made(settings)).not.toThrow();
    expect(() => made({ thinking: { type: 'enabled', budget_tokens: 2_000 } })).not.toThrow();
  });
});
