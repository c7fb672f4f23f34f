import { describe, expect, test } from 'vitest';
import { deciderProblem, decidersText, type Deciders } from '../../src/core/requests/deciders.js';

const asked = ['request'];

/** What another version, or another program, may have recorded. */
const unknown = (deciders: unknown): readonly Deciders[] => [deciders as Deciders];

describe('deciders that this version does not know', () => {
  test.each(['not requester', 'requesters', { names: ['request'] }, null, 7])(
    'such as %j let no one decide',
    (deciders) => {
      const problem = deciderProblem(unknown(deciders), { by: 'request', requesters: asked });
      const text = `no one, since the deciders ${JSON.stringify(deciders)} are unknown`;
      expect(problem).toBe(`by: expected ${text}, got "request"`);
      expect(decidersText(unknown(deciders))).toBe(text);
    },
  );
});

test.each<[Deciders, string, boolean]>([
  ['requester', 'request', true],
  ['requester', 'ada', false],
  ['not_requester', 'request', false],
  ['not_requester', 'ada', true],
  [['ada'], 'ada', true],
  [['adam', 'bo'], 'ada', false],
])('%j and %s: %s', (deciders, by, may) => {
  expect(deciderProblem([deciders], { by, requesters: asked }) === null).toBe(may);
});
