import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { collectSecretNames } from '../../src/worker/secret-names.js';
import { isSecretName, secretsOf, learnSecrets } from '../../src/secrets/known.js';
import { compileMatcher } from '../../src/secrets/matcher.js';
import {
  redactJson,
  redactJsonText,
  redactFields,
  redact,
  redactMessage,
  withoutSecrets,
  createStreamRedactor,
} from '../../src/secrets/redact.js';
import { CANARIES, CANARY_NAMES, canariesIn, formsOf } from '../support/canaries.js';

beforeAll(() => learnSecrets({ env: CANARIES, names: CANARY_NAMES }));

/** Runs with its own environment. */
function redacted(text: string, env: Record<string, string | undefined>): string {
  return withoutSecrets(text, compileMatcher(secretsOf(env, new Set())));
}

describe('a variable name', () => {
  test.each(
    'API_KEY openai_api_key GH_TOKEN TOKEN_FOR_X MY_SECRET DB_PASS DB_PASSWORD PGPASSWORD DB_PWD GITHUB_PAT SENTRY_DSN AWS_CREDENTIALS CREDENTIAL BASIC_AUTH npm_config__authToken TEMPORAL_API_KEY'.split(
      ' ',
    ),
  )('%s suggests a secret', (name) => expect(isSecretName(name)).toBe(true));

  test.each(
    'PATH PWD OLDPWD SSH_AUTH_SOCK TLS_KEY_PATH MANPATH XAUTHORITY HOME KEYBOARD PASSAGE MAX_TOKENS AUTHOR PATTERN'.split(
      ' ',
    ),
  )('%s does not', (name) => expect(isSecretName(name)).toBe(false));
});

describe('a text', () => {
  const environment = {
    OPENAI_API_KEY: 'sk-live-1234567890',
    db_password: 'p4ssw0rd-long',
    SHORT_KEY: 'short',
    AUTH: 'true',
    PORT_KEY: '12345678',
    PASS: 'password',
    FILL_SECRET: 'xxxxxxxxxxxx',
    OLD_SECRET: 'sk-live-1234567890-and-more',
    ESCAPED_TOKEN: 'line\nbreak"quote',
    DOLLAR_TOKEN: 'aaaa$&bbbb',
    PATH: '/usr/bin:/usr/local/bin',
    EMPTY_KEY: '',
    MISSING_KEY: undefined,
  };

  test.each([
    ['Bearer sk-live-1234567890!', 'Bearer [redacted OPENAI_API_KEY]!'],
    ['p4ssw0rd-long p4ssw0rd-long', '[redacted db_password] [redacted db_password]'],
    ['sk-live-1234567890-and-more', '[redacted OLD_SECRET]'],
    ['sk-live-1234567890-and-less', '[redacted OLD_SECRET]less'],
    ['raw line\nbreak"quote', 'raw [redacted ESCAPED_TOKEN]'],
    ['{"x":"line\\nbreak\\"quote"}', '{"x":"[redacted ESCAPED_TOKEN]"}'],
    ['aaaa$&bbbb', '[redacted DOLLAR_TOKEN]'],
    ['short /usr/bin:/usr/local/bin', 'short /usr/bin:/usr/local/bin'],
    ['password true 12345678 xxxxxxxxxxxx', 'password true 12345678 xxxxxxxxxxxx'],
  ])('%j becomes %j', (text, expected) => {
    expect(redacted(text, environment)).toBe(expected);
  });

  test.each(Object.entries(CANARIES))('never shows %s in any form', (name, value) => {
    for (const [form, text] of Object.entries(formsOf(value))) {
      const shown = redact(`before ${text} after`);
      expect([form, canariesIn(shown), shown]).toEqual([form, [], shown]);
      expect(shown).toMatch(/^before .*after$/s);
      expect(shown).toContain(`[redacted ${name}]`);
    }
  });

  test.each(Object.entries(CANARIES))('shows nothing of %s if it is truncated', (_name, value) => {
    for (const [form, text] of Object.entries(formsOf(value))) {
      for (let end = 1; end < text.length; end += 1) {
        expect([form, end, canariesIn(redact(`x ${text.slice(0, end)}`))]).toEqual([form, end, []]);
      }
    }
  });

  test('shows no end of a secret that was truncated on the left', () => {
    const key = CANARIES['CANARY_API_KEY'] ?? '';
    expect(redact(`${key.slice(9)} is wrong`)).toBe('[redacted CANARY_API_KEY] is wrong');
  });

  test('keeps a public prefix and texts that only look similar', () => {
    const text =
      'sk-proj-cnry7 postgres://app@db https://cnry3e5a ghp_other00000000000000 db.internal:5432/app';
    expect(redact(text)).toBe(text);
  });

  test('hides user info and unknown keys in a message, but keeps them in data', () => {
    const text =
      'GET https://joe:hunter2@host/x with Bearer abc.def-123456, key sk-abc12345 failed';
    expect(redact(text)).toBe(text);
    expect(redactMessage(text)).toBe(
      'GET https://[redacted]@host/x with [redacted], key [redacted] failed',
    );
    const plain =
      'ssh://git@github.com http://host:8080/a@b http://127.0.0.1:99 Basic training is over';
    expect(redactMessage('sent Basic dXNlcjpzM2NyZXQx.')).toBe('sent [redacted].');
    expect(redactMessage(plain)).toBe(plain);
    expect(redactMessage('cannot reach amqp://joe:hunt')).toBe('cannot reach amqp://[redacted]');
  });
});

describe('a secret of several fields', () => {
  const key = '-----BEGIN PRIVATE KEY-----\nMIIEcnry0000aaaabbbb\n-----END PRIVATE KEY-----\n';
  const account = { type: 'service_account', project_id: 'cnry', private_key: key };
  const env = {
    GOOGLE_CREDENTIALS: JSON.stringify(account),
    FIREBASE_KEY: key.replaceAll('\n', '\\n'),
    APP_DSN: 'host=localhost port=5432 password=cnry-p4ssw0rd dbname=app',
  };

  test('is hidden as a whole, and by its secret fields', () => {
    for (const text of Object.values(env))
      expect(redacted(text, env)).toMatch(/^\[redacted [\w ]+\]$/);
    const shown = JSON.parse(redacted(JSON.stringify(account, null, 2), env));
    expect(shown).toEqual({ ...account, private_key: expect.stringMatching(/^\[redacted \w+\]/) });
    expect(redacted('with password=cnry-p4ssw0rd', env)).toBe('with password=[redacted APP_DSN]');
  });

  test.each([
    '{"type":"service","name":"x"}',
    '{"type":"service_account","project_id":"another"}',
    'host=localhost port=5432 is where it listens',
    'a file that begins with -----BEGIN PRIVATE KEY-----',
    'Temporal and temporal.db',
    '/home/runner/app/notes.md and C:\\Users\\runner\\notes.md',
    'http://localhost:3000/health and https://hooks.example.com/services/list',
  ])('hides nothing of a text that only begins the same: %s', (text) => {
    const places = {
      GOOGLE_APPLICATION_CREDENTIALS: '/home/runner/app/creds.json',
      SIGNING_KEY: 'C:\\Users\\runner\\signing.pem',
      AUTH_URL: 'http://localhost:3000',
      HOOK_TOKEN: 'https://hooks.example.com/services/T0cnry/B0cnry/7f3c9a',
    };
    expect(redacted(text, { ...env, ...places, POSTGRES_PASSWORD: 'temporal' })).toBe(text);
    const hook = 'https://hooks.example.com/services/T0cnry/B0';
    expect(redacted(`cut: ${hook}`, places)).toBe('cut: [redacted HOOK_TOKEN]');
  });
});

test('JSON stays JSON', () => {
  learnSecrets({ env: { WHOLE_AUTH: '{"users":["cnry-7f3","cnry-8a1"]}' } });
  const whole = redactJsonText('{"auth":{"users":["cnry-7f3","cnry-8a1"]},"n":1}');
  expect(JSON.parse(whole)).toEqual({ auth: '[redacted WHOLE_AUTH]', n: 1 });
  const key = CANARIES['CANARY_DB_PASSWORD'] ?? '';
  learnSecrets({ values: ['730911824466'] });
  const value = { [key]: 1, list: [`a ${key}`, 730_911_824_466, null, true, 7] };
  const safe = {
    '[redacted CANARY_DB_PASSWORD]': 1,
    list: ['a [redacted CANARY_DB_PASSWORD]', '[redacted]', null, true, 7],
  };
  expect(redactJson(value)).toEqual(safe);
  expect(JSON.parse(redactJsonText(JSON.stringify(value)))).toEqual(safe);
  const clean = { a: [1, 'x'] };
  expect(redactJson(clean)).toBe(clean);
  expect(redactJsonText('{"a": 1}')).toBe('{"a": 1}');
  expect(redactJsonText(`no JSON ${key}`)).toBe('no JSON [redacted CANARY_DB_PASSWORD]');
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  expect(redactJson(cycle)).toBe(cycle);
});

test('a log entry shows no secret, not even in errors and their causes', () => {
  const key = CANARIES['CANARY_API_KEY'] ?? '';
  const error = new Error(`with ${key}`, { cause: new Error(`of ${key}`) });
  error.name = key;
  error.cause = Object.assign(new Error(key), { cause: error });
  const { failure, ...rest } = redactFields({ failure: error, text: key, more: { key } });
  const shown = failure as Error;
  expect(canariesIn([shown.message, shown.name, shown.stack, String(shown.cause)].join())).toEqual(
    [],
  );
  expect(rest).toEqual({
    text: '[redacted CANARY_API_KEY]',
    more: { key: '[redacted CANARY_API_KEY]' },
  });
});

describe('a stream', () => {
  test.each(Object.entries(CANARIES))('shows nothing of %s however it is split', (_name, value) => {
    for (const [form, text] of Object.entries(formsOf(value))) {
      for (const size of [1, 3, 7, 1000]) {
        const stream = createStreamRedactor();
        let shown = '';
        for (let at = 0; at < text.length; at += size)
          shown += stream.push(text.slice(at, at + size));
        shown += stream.push(' and more');
        shown += stream.end();
        expect([form, size, canariesIn(shown)]).toEqual([form, size, []]);
        expect(shown).toContain('[redacted CANARY_');
        expect(shown).toMatch(/ and more$/);
      }
    }
  });

  test('keeps an ordinary text unchanged, and holds back only a possible start of a secret', () => {
    const stream = createStreamRedactor();
    const parts = ['The key sk-', 'pro', 'jects are ', 'many, cnry'];
    const shown = parts.map((part) => stream.push(part));
    expect(shown.join('') + stream.end()).toBe(parts.join(''));
    expect(shown.slice(0, 2)).toEqual(['The key sk-', '']);
  });
});

test('the time grows only with the length of the text', () => {
  const names = Array.from({ length: 200 }, (_, index) => index);
  const env = Object.fromEntries(
    names.map((index) => [
      `K${index}_KEY`,
      `sk-proj-${createHash('sha256').update(String(index)).digest('base64url')}`,
    ]),
  );
  const matcher = compileMatcher(secretsOf(env, new Set()));
  const hostile = [
    'sk-proj-'.repeat(8_192),
    `${env['K7_KEY']}x`.repeat(1_250),
    '://a:'.repeat(13_000),
  ];
  for (const text of hostile) {
    const from = performance.now();
    redactMessage(withoutSecrets(text, matcher));
    expect(performance.now() - from).toBeLessThan(2_000);
  }
});

test('a configuration names further secrets: listed ones, and those of models, servers, and native tools', () => {
  const called = defineAgent({
    description: 'x',
    name: 'called',
    instructions: 'x',
    model: 'm',
    settings: { nativeTools: [{ type: 'mcp', server_label: 'd', authorizationEnv: 'D' }] },
  });
  const mcp = [
    mcpServer({ name: 'one', transport: 'stdio', command: 'x', env: ['A'] }),
    mcpServer({
      name: 'two',
      transport: 'http',
      url: 'https://x',
      authEnv: 'B',
      headersEnv: { h: 'C' },
    }),
  ];
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm', mcp, agents: [called] });
  const models = { m: { apiKeyEnv: 'E' } };
  const config = defineConfig({ agents: [agent], models, secrets: ['F'] });
  expect(collectSecretNames(config).toSorted()).toEqual(['A', 'B', 'C', 'D', 'E', 'F']);
  const given = 'a-secret-itself' as unknown as readonly string[];
  expect(() => defineConfig({ agents: [], secrets: given })).toThrow(
    'config: secrets: expected a list of names of environment variables, got string; write',
  );
  expect(() => defineConfig({ agents: [], secrets: [''] })).toThrow('got something else at [0]');
});

test('a stream shows no more than three characters of a key, however it is split', () => {
  const key = CANARIES['CANARY_API_KEY'] ?? '';
  for (let size = 1; size <= key.length; size += 1) {
    const redactor = createStreamRedactor();
    const text = `x ${key} y`;
    let shown = '';
    for (let at = 0; at < text.length; at += size)
      shown += redactor.push(text.slice(at, at + size));
    shown += redactor.end();
    expect(shown).toMatch(/^x .{0,3}\[redacted CANARY_API_KEY\] y$/);
  }
});
