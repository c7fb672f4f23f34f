import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isModelError } from '../../src/models/model.js';
import { readFacts } from '../../src/models/wire/error-facts.js';
import { ERROR_TABLE, findRow } from '../../src/models/wire/error-table.js';
import { providerError, replyToError } from '../../src/models/wire/errors.js';
import { place, thrownBy } from './support.js';

type Status = number | undefined;

/** Returns the kind of an error, or `filtered` if it counts as a reply of the filter. */
function meaningOf(status: Status, error: unknown): string {
  const failure = { headers: new Headers(), error, ...(status !== undefined && { status }) };
  try {
    return replyToError(failure, place).finish;
  } catch (thrown) {
    if (isModelError(thrown)) return thrown.details.kind;
    throw thrown;
  }
}

const inError = (error: object): object => ({ error });

interface Example {
  readonly server: string;
  /** Absent: within a stream, or with status 200. */
  readonly status?: number;
  readonly body?: unknown;
}

const FOLDER = 'test/fixtures/provider-errors';

/** Errors as servers are known to send them, by their meaning. */
const ALL = readdirSync(FOLDER).flatMap((file) => {
  const examples = JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as readonly Example[];
  return examples.map(
    ({ server, status, body }) => [file.replace('.json', ''), server, status, body] as const,
  );
});

test.each(ALL)('%s: %s, status %s', (meaning, _server, status, error) => {
  expect(meaningOf(status, error)).toBe(meaning);
});

test('every row of the table has an example', () => {
  const hit = new Set(
    ALL.map(([, , status, error]) => {
      const failure = status === undefined ? { error } : { status, error };
      return findRow(readFacts(failure, 0))?.name;
    }),
  );
  expect(ERROR_TABLE.map(({ name }) => name).filter((name) => !hit.has(name))).toEqual([]);
});

describe('a wait in the body', () => {
  const waitOf = (error: unknown, headers: Record<string, string> = {}) =>
    providerError({ status: 429, headers: new Headers(headers), error }, place).details
      .retryAfterMs;

  test.each<[string, unknown, number | undefined]>([
    ['OpenAI', inError({ message: 'Please try again in 20s. Visit https://x' }), 20_000],
    ['OpenAI, milliseconds', inError({ message: 'Please try again in 226ms.' }), 226],
    ['Groq', inError({ message: 'Please try again in 2m59.56s. Need more?' }), 179_560],
    ['hours', inError({ message: 'try again in 1h0m0s' }), 600_000],
    ['Azure', inError({ message: 'Please retry after 20 seconds.' }), 20_000],
    ['Gemini', [{ error: { message: 'Please retry in 45.063939s.' } }], 45_064],
    [
      'Google',
      [
        {
          error: {
            details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '36s' }],
          },
        },
      ],
      36_000,
    ],
    ['Google, an object', inError({ details: [{ retryDelay: { seconds: 7 } }] }), 7_000],
    ['retry_after', { message: 'slow', retry_after: 1.5 }, 1_500],
    ['retry_after as a text', { message: 'slow', retry_after: '3' }, 3_000],
    ['retry_after_ms', inError({ retry_after_ms: 250 }), 250],
    ['Hugging Face', { error: 'Model x is currently loading', estimated_time: 20.5 }, 20_500],
    [
      'OpenRouter',
      inError({ metadata: { headers: { 'X-RateLimit-Reset': String(place.now() + 9_000) } } }),
      9_000,
    ],
    ['a Unix time in seconds', { retry_after: place.now() / 1000 + 4 }, 4_000],
    ['a minute in words', inError({ message: 'Please wait 1 minute and try again' }), 60_000],
    ['seconds without a unit', inError({ message: 'Retry after 12' }), 12_000],
    ['a date', inError({ message: 'retry after 2027-01-01' }), undefined],
    ['no time', inError({ message: 'try again later' }), undefined],
    ['an absurd one', { retry_after: 9e8 }, 600_000],
    ['rubbish', { retry_after: { seconds: { seconds: null } } }, undefined],
  ])('of %s is read', (_server, error, expected) => {
    expect(waitOf(error)).toBe(expected);
  });

  test('counts only if no header has one', () => {
    expect(waitOf(inError({ message: 'try again in 20s' }), { 'retry-after': '2' })).toBe(2_000);
  });
});

test('a body of any size and form is read', () => {
  const deep: unknown = JSON.parse(`${'{"error":'.repeat(5_000)}1${'}'.repeat(5_000)}`);
  const bodies: readonly unknown[] = [
    ' '.repeat(262_144),
    'model '.repeat(40_000),
    'try again in 1'.repeat(18_000),
    `{"error":${'['.repeat(100_000)}`,
    deep,
    Array.from({ length: 100_000 }, () => ({ error: { message: 'x' } })),
    { error: { message: 'invalid '.repeat(32_000) } },
  ];
  for (const body of bodies) {
    expect(['bad_request', 'retry']).toContain(meaningOf(400, body));
  }
});

test('the message shows what the model of a router said, once', () => {
  const error = inError({
    message: 'Provider returned error',
    metadata: { raw: '{"error":"odd words"}' },
  });
  const { message } = providerError({ status: 400, headers: new Headers(), error }, place);
  expect(message).toMatch(/Provider's message: Provider returned error odd words$/);
});

test('a refused key and refused access have different advice', () => {
  const adviceOf = (status: number) =>
    thrownBy(() => replyToError({ status, headers: new Headers(), error: {} }, place)).message;
  expect(adviceOf(401)).toContain('set OPENAI_API_KEY for the worker to a valid key');
  expect(adviceOf(403)).toContain(
    'access was refused; check what the key in OPENAI_API_KEY may use',
  );
});
