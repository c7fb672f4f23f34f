import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Classification,
  BINARY_CLASSES,
  scoreClasses,
} from '../../src/output/classes/classes.js';
import type { TokenLogprob } from '../../src/models/model.js';

/** A token with its alternatives, as probabilities; the token itself is the first. */
function token(alternatives: Record<string, number>): TokenLogprob {
  const top = Object.entries(alternatives).map(([text, probability]) => ({
    token: text,
    logprob: Math.log(probability),
  }));
  const [first] = top;
  return { ...(first ?? { token: '', logprob: 0 }), top };
}

function scored(classes: readonly string[], ...logprobs: readonly TokenLogprob[]): Classification {
  const result = scoreClasses(classes, logprobs);
  if (result.ok) return result.classification;
  throw new Error(result.problem);
}

function probabilities({ classes }: Classification): readonly number[] {
  return classes.map(({ probability }) => Number(probability.toFixed(6)));
}

const mail = ['spam', 'a personal letter', 'newsletter'];

test('normalizes over the classes and returns the probability outside of them', () => {
  const result = scored(mail, token({ B: 0.6, A: 0.2, The: 0.1 }));
  expect(result.best).toBe('a personal letter');
  expect(result.classes.map(({ name }) => name)).toEqual(mail);
  expect(probabilities(result)).toEqual([0.25, 0.75, 0]);
  expect(result.outside).toBeCloseTo(0.2, 9);
  expect(result.unseen).toEqual(['newsletter']);
  expect(result).not.toHaveProperty('samples');
});

test('adds up all spellings of a key and of a label', () => {
  const result = scored(
    mail,
    token({
      A: 0.2,
      ' A': 0.1,
      a: 0.05,
      '▁A': 0.05,
      'A.': 0.05,
      '"A': 0.05,
      spam: 0.1,
      Ġb: 0.2,
      C: 0.2,
    }),
  );
  expect(probabilities(result)).toEqual([0.6, 0.2, 0.2]);
});

test('returns the entropy', () => {
  expect(scored(['x1', 'x2'], token({ A: 0.5, B: 0.5 })).entropyBits).toBeCloseTo(1, 9);
  expect(scored(['x1', 'x2'], token({ A: 1 })).entropyBits).toBe(0);
  const four = ['k', 'l', 'm', 'nn'];
  expect(scored(four, token({ A: 0.1, B: 0.1, C: 0.1, D: 0.1 })).entropyBits).toBeCloseTo(2, 9);
});

test('prefers the class that is listed first if two are equal', () => {
  expect(scored(['x1', 'x2'], token({ B: 0.5, A: 0.5 })).best).toBe('x1');
});

test('skips tokens that only open the reply, weighted by their probability', () => {
  const result = scored(mail, token({ '"': 0.5, A: 0.3 }), token({ B: 0.8, A: 0.2 }));
  // A: 0.3 + 0.5 × 0.2, B: 0.5 × 0.8
  expect(probabilities(result)).toEqual([0.5, 0.5, 0]);
  expect(result.outside).toBeCloseTo(0.2, 9);
});

test('stops at the first meaningful token', () => {
  const result = scored(mail, token({ C: 0.9, A: 0.1 }), token({ ' A': 1 }));
  expect(probabilities(result)).toEqual([0.1, 0, 0.9]);
});

test('counts the token itself if it is missing among its alternatives, and only once', () => {
  const missing = { ...token({ A: 0.25 }), token: 'B', logprob: Math.log(0.25) };
  expect(probabilities(scored(mail, missing))).toEqual([0.5, 0.5, 0]);
  expect(scored(mail, token({ A: 0.5 })).outside).toBeCloseTo(0.5, 9);
});

test('never returns a negative `outside` after rounding', () => {
  expect(scored(['x1', 'x2'], token({ A: 0.6, B: 0.4001 })).outside).toBe(0);
});

describe('labels that share a prefix', () => {
  test('do not count if a token may be the beginning of another', () => {
    const result = scored(['spam', 'spam-like'], token({ B: 0.4, spam: 0.5, A: 0.1 }));
    expect(probabilities(result)).toEqual([0.2, 0.8]);
    expect(result.outside).toBeCloseTo(0.5, 9);
  });

  test('are not keys if the reply continues with a word', () => {
    const reply = [token({ B: 0.9, A: 0.1 }), token({ '2': 1 }), token({ B: 1 })];
    expect(scoreClasses(['B2C', 'B2B'], reply)).toEqual({
      ok: false,
      problem: 'The reply is none of the classes; it begins with "B2B".',
    });
  });

  test.each(['.', ' because', '▁x', 'Ġx', '\n', '"', '<|im_end|>'])(
    'are keys if %j follows',
    (next) => {
      expect(scored(mail, token({ B: 0.9 }), token({ [next]: 1 })).best).toBe('a personal letter');
    },
  );
});

test('uses classes that are single characters as their own keys', () => {
  const result = scored(['B', 'a', '1'], token({ A: 0.3, b: 0.1, ' 1': 0.1 }));
  expect(result.best).toBe('a');
  expect(probabilities(result)).toEqual([0.2, 0.6, 0.2]);
});

test('reads a label that looks like a key as the key', () => {
  expect(scored(['B', 'other'], token({ B: 1 })).best).toBe('other');
});

test('scores true against false', () => {
  const { classes } = scored(BINARY_CLASSES, token({ A: 0.6, ' True': 0.1, B: 0.2, False: 0.1 }));
  expect(classes[0]).toEqual({ name: 'true', probability: expect.closeTo(0.7, 9) });
});

test.each<[string, readonly TokenLogprob[], string]>([
  ['no token', [], 'The reply has no token with a probability.'],
  [
    'another word',
    [token({ Hello: 0.9 })],
    'The reply is none of the classes; it begins with "Hello".',
  ],
  [
    'blanks only',
    [token({ ' ': 1 }), token({ '\n': 1 })],
    'The reply is none of the classes; it begins with " \\n".',
  ],
  [
    'an impossible class',
    [{ token: 'x', logprob: 0, top: [{ token: 'A', logprob: -9_999 }] }],
    'The reply is none of the classes; it begins with "x".',
  ],
])('is not ok for a reply with %s', (_name, logprobs, problem) => {
  expect(scoreClasses(mail, logprobs)).toEqual({ ok: false, problem });
});

test('returns probabilities that sum to 1, for any logprobs', () => {
  const logprob = fc.double({ min: -50, max: 0, noNaN: true });
  const text = fc.oneof(fc.constantFrom('A', ' B', 'c', '"', ' ', 'spam', '\n'), fc.string());
  const alternative = fc.record({ token: text, logprob });
  const position = fc.record({
    token: text,
    logprob,
    top: fc.array(alternative, { maxLength: 20 }),
  });
  fc.assert(
    fc.property(fc.array(position, { maxLength: 4 }), (logprobs) => {
      const result = scoreClasses(mail, logprobs);
      if (!result.ok) return;
      const { classes, outside, entropyBits, best } = result.classification;
      const sum = classes.reduce((total, { probability }) => total + probability, 0);
      expect(sum).toBeCloseTo(1, 9);
      expect(outside).toBeGreaterThanOrEqual(0);
      expect(outside).toBeLessThanOrEqual(1);
      expect(entropyBits).toBeLessThanOrEqual(Math.log2(3) + 1e-9);
      expect(mail).toContain(best);
    }),
  );
});
