import { describe, expect, test } from 'vitest';
import { toAgentDefinition } from '../../src/agents/agent-definition.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import { mergeRequestOptions, mergeRequestSettings } from '../../src/worker/options.js';
import { collectSecretNames } from '../../src/worker/secret-names.js';

const pay = { tool: 'pay*', then: 'ask' } as const;
const common = { name: 'a', instructions: 'x' };
const hashOf = (agent: ReturnType<typeof defineAgent>): string =>
  toAgentDefinition(agent, { model: 'm', tools: [] }).hash;
const KEY = Buffer.alloc(24, 7);
const notify = { url: 'https://hooks.example/x', secretEnv: 'HOOK' };

/** What a JavaScript author could write. */
function configLoosely(options: Record<string, unknown>): unknown {
  return Reflect.apply(defineConfig, undefined, [{ agents: [], ...options }]);
}

describe('rules of an agent', () => {
  test('are pinned, and no rules leave the hash unchanged', () => {
    const ruled = defineAgent({ ...common, rules: [pay] });
    expect(toAgentDefinition(ruled, { model: 'm', tools: [] }).rules).toEqual([pay]);
    expect(hashOf(defineAgent({ ...common, rules: [] }))).toBe(hashOf(defineAgent(common)));
    expect(hashOf(ruled)).not.toBe(hashOf(defineAgent(common)));
  });

  test('are refused if one has a fault', () => {
    const options = { ...common, rules: [{ tool: 'x', then: 'perhaps' }] };
    expect(() => Reflect.apply(defineAgent, undefined, [options])).toThrow(
      'agent "a": rules[0].then: expected allow, ask, or deny, got "perhaps"',
    );
  });
});

test('an agent may ask a person when a limit is reached', () => {
  expect(defineAgent({ ...common, onLimit: 'ask' }).onLimit).toBe('ask');
});

describe('defineConfig', () => {
  test.each<[Record<string, unknown>, string]>([
    [{ rules: [{ tool: '', then: 'ask' }] }, 'config: rules[0].tool: expected'],
    [{ mayDecide: true }, 'config: mayDecide: expected a function, got true'],
    [{ notify: 'https://x.example' }, 'config: notify: expected object'],
    [{ notify: { ...notify, url: 'ftp://x.example' } }, 'notify.url: expected an address such as'],
    [{ notify: { ...notify, secretEnv: 'whsec_AAAA/+' } }, 'notify.secretEnv: expected the name'],
    [{ notify: { url: notify.url } }, 'notify.secretEnv: '],
    [{ notify: { ...notify, headers: {} } }, 'notify'],
  ])('refuses %j', (options, message) => {
    expect(() => configLoosely(options)).toThrow(message);
  });

  test('does not show addresses or keys in a message', () => {
    const wrong = { url: 'ftp://u:geheim@x.example', secretEnv: 'whsec_geheim/' };
    expect(() => configLoosely({ notify: wrong })).toThrow(/^(?!.*geheim)/s);
  });

  test('accepts a function or an address', () => {
    expect(configLoosely({ notify, rules: [pay] })).toMatchObject({ notify, rules: [pay] });
    expect(configLoosely({ notify: () => undefined })).toHaveProperty('notify');
  });
});

describe('a worker', () => {
  test('applies the rules of its configuration and its own', () => {
    const own = { tool: 'delete_*', then: 'deny' } as const;
    expect(mergeRequestOptions({ rules: [pay] }, { rules: [own] }).rules).toEqual([pay, own]);
    expect(mergeRequestOptions({}, {})).toEqual({ rules: [] });
  });

  test('refuses malformed rules, wherever they are', () => {
    const rules = [{ tool: 'x', then: 'no' }];
    for (const given of [[{ rules }, {}] as const, [{}, { rules }] as const]) {
      expect(() => Reflect.apply(mergeRequestOptions, undefined, given)).toThrow(
        'rules[0].then: expected allow, ask, or deny',
      );
    }
  });

  test.each([
    [true, true, true],
    [true, false, false],
    [false, true, false],
  ])('allows a decision if both functions allow it: %s and %s', async (first, second, allowed) => {
    const merged = mergeRequestOptions({ mayDecide: () => first }, { mayDecide: () => second });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the functions read no arguments
    expect(await merged.mayDecide?.({} as never, {} as never)).toBe(allowed);
  });

  test.each([
    [{}, 'notify.secretEnv: expected the environment variable HOOK, got none; set it to whsec_'],
    [{ HOOK: KEY.toString('base64') }, 'expected a key of Standard Webhooks in HOOK'],
    [{ HOOK: 'whsec_AAAA' }, 'expected a key of Standard Webhooks in HOOK'],
    [{ HOOK: `whsec_${'!'.repeat(40)}` }, 'expected a key of Standard Webhooks in HOOK'],
  ])('does not start with %j', (env, message) => {
    expect(() => mergeRequestSettings({ notify }, env)).toThrow(message);
  });

  test('reads the key, and treats it as a secret', () => {
    const env = { HOOK: `whsec_${KEY.toString('base64')}` };
    expect(mergeRequestSettings({ notify }, env).notify).toEqual({ url: notify.url, key: KEY });
    expect(collectSecretNames({ agents: [], notify })).toContain('HOOK');
  });
});
