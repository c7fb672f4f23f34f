import { describe, expect, test } from 'vitest';
import type { ActivityDependencies } from '../../src/activities/activity-context.js';
import { loadAgent } from '../../src/activities/load-agent.js';
import { createAgentCatalog } from '../../src/agents/agent-definition.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { createModelCatalog } from '../../src/models/model-catalog.js';
import type { ModelEntry } from '../../src/models/model-entry.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { findWindow } from '../../src/models/known-models.js';

describe('findWindow', () => {
  test('knows the window of a model and of its snapshots', () => {
    expect(findWindow('gpt-4.1-mini')).toBe(1_047_576);
    expect(findWindow('gpt-4.1-mini-2025-04-14')).toBe(1_047_576);
    expect(findWindow('claude-haiku-4-5-20251001')).toBe(200_000);
  });

  test('counts only what a prompt may have, if a part is reserved for the answer', () => {
    expect(findWindow('gpt-5')).toBe(400_000 - 128_000);
    expect(findWindow('gpt-5.4')).toBe(1_050_000 - 128_000);
  });

  test('returns no window if it is unknown', () => {
    for (const model of ['llama3.2', 'gpt-4.1-mini-ft', 'gpt-5-2025-08', '', 'constructor']) {
      expect(findWindow(model)).toBeNull();
    }
  });
});

describe('the window of a resolved model', () => {
  const key = { OPENAI_API_KEY: 'key' };

  function resolved(entries: Record<string, ModelEntry>, name: string): number | null {
    return createModelCatalog(entries, key).resolve(name).window;
  }

  test("is that of the provider's name for the model", () => {
    expect(resolved({}, 'gpt-4o-mini')).toBe(128_000);
    expect(resolved({ cheap: { model: 'gpt-4o-mini' } }, 'cheap')).toBe(128_000);
    expect(resolved({ local: { baseUrl: 'http://127.0.0.1:1/v1' } }, 'local')).toBeNull();
  });

  test('is the same without a key, when no call could be made', () => {
    const { window } = createModelCatalog({ cheap: { model: 'gpt-4o' } }, {}).resolve('cheap');
    expect(window).toBe(128_000);
  });

  test('comes first of all from the config', () => {
    expect(resolved({ 'gpt-4o': { window: 9_000 } }, 'gpt-4o')).toBe(9_000);
    const local = { baseUrl: 'http://127.0.0.1:1/v1', window: 32_768 };
    expect(resolved({ local }, 'local')).toBe(32_768);
  });

  test('is unknown for code that acts as a model, unless it is set', () => {
    const script = (): ReturnType<typeof scriptedModel> => scriptedModel([replyText('hi')]);
    expect(resolved({}, 'demo')).toBeNull();
    expect(resolved({ 'gpt-4o': script() }, 'gpt-4o')).toBeNull();
    expect(resolved({ script: { ...script(), window: 4_000 } }, 'script')).toBe(4_000);
  });

  test.each([0, -1, 1.5, Number.NaN, Infinity, '128k', null])(
    'cannot be %j: the config is refused',
    (window) => {
      const entries = { mine: { window } as unknown as ModelEntry };
      expect(() => createModelCatalog(entries, {})).toThrow(
        /^models\.mine: window: expected a whole number of tokens .+, got .+; or omit it$/,
      );
    },
  );
});

test('a run pins the window of its model, and none if it is unknown', async () => {
  const models = createModelCatalog(
    { small: { baseUrl: 'http://127.0.0.1:1/v1', window: 9_000 } },
    {},
  );
  const windows = ['small', 'demo'].map(async (model) => {
    const agents = createAgentCatalog([defineAgent({ name: 'a', instructions: '', model })], {
      defaultModel: '',
      builtIn: [],
    });
    const searchAttributes = () => Promise.resolve([]);
    const known = { agents, models, requests: { rules: [] }, searchAttributes };
    return await loadAgent(known as unknown as ActivityDependencies, {
      agent: 'a',
      limits: {},
    });
  });
  const [small, demo] = await Promise.all(windows);
  expect(small?.window).toBe(9_000);
  expect(demo).not.toHaveProperty('window');
});
