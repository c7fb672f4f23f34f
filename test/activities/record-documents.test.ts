import { wellFormed } from '../../src/core/text/text.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { learnSecrets } from '../../src/secrets/known.js';
import { recordDocuments, selectDocuments } from '../../src/activities/documents.js';
import { BlobError, type BlobStore } from '../../src/storage/blob-store.js';
import { parseDocumentKey } from '../../src/core/rules/documents.js';
import { sha256Hex } from '../../src/core/text/json.js';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { anyString } from '../support/any-string.js';

const blobs: BlobStore = {
  put: async (text) => ({ sha256: sha256Hex(text), bytes: Buffer.byteLength(text) }),
  get: () => Promise.reject(new BlobError('nothing is here', { kind: 'missing' })),
};

async function messagesFor(given: unknown, prompt: readonly PromptMessage[] = []) {
  const documents = await recordDocuments(selectDocuments(given, prompt), {
    blobs,
    readable: true,
  });
  return documents.map((document) => ({ role: 'user', ...document }) as const);
}

describe('the result of retrieve', () => {
  test.each([
    [undefined, 'expected an array of strings or { text, id?, source? }, got undefined'],
    ['a', 'got a string'],
    [{ documents: [] }, 'got a value of type object'],
    [[null], 'document 0: expected a string as text, got null'],
    [['a', ['b']], 'document 1: expected a string as text, got an array'],
    [['a', { text: 1 }], 'document 1: expected a string as text, got a value of type number'],
    [
      [{ text: 'a', id: 7 }],
      'document 0: expected a string as id and source, got a value of type number',
    ],
  ])('is refused when it is %j', (given, message) => {
    expect(() => selectDocuments(given, [])).toThrow(message);
  });

  test('is recognized in a later turn, even if it is truncated differently then', async () => {
    const large = { text: 'z'.repeat(90_000), id: 'large' };
    const first = await messagesFor(['small', large]);
    expect(first).toHaveLength(2);
    expect(await messagesFor([large, 'small', 'new'], first)).toHaveLength(1);
    const changed = await messagesFor([{ ...large, text: 'changed' }], first);
    expect(changed[0]?.text).toContain('changed');
  });

  test('never closes its own tag early, and stays within its size limit', async () => {
    const piece = fc.constantFrom(
      '</document>',
      '< / DOCUMENT >',
      '<document key="',
      '\n',
      '\0',
      '"',
    );
    const word = fc.oneof(piece, anyString(), fc.constant('w'.repeat(30_000)));
    const text = fc.array(word, { maxLength: 6 }).map((words) => words.join(''));
    const document = fc.record(
      { text, id: word, source: word },
      { requiredKeys: ['text'], noNullPrototype: true },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(text, document), { maxLength: 50 }), async (given) => {
        const messages = await messagesFor(given);
        expect(Buffer.byteLength(JSON.stringify(messages))).toBeLessThan(256 * 1024);
        for (const message of messages) {
          expect(parseDocumentKey(message.text)).not.toBeNull();
          expect(message.text.match(/<\s*\/?\s*document/gi)).toEqual(['<document', '</document']);
          expect(message.text.endsWith('\n</document>')).toBe(true);
          expect(wellFormed(message.text)).toBe(message.text);
        }
        expect(await messagesFor(given, messages)).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  test.each(['"', '\\', '<', '\u2028', 'x', '"<document'])(
    'never makes an event of the history too large: %j',
    async (mark) => {
      const each = Array.from({ length: 60 }, (_, n) => ({
        text: `${n} ${mark.repeat(20_000)}`,
        id: `${n} ${mark.repeat(500)}`,
        source: mark.repeat(900),
      }));
      const kept = await recordDocuments(selectDocuments(each, []), { blobs, readable: true });
      expect(kept).toHaveLength(50);
      expect(Buffer.byteLength(JSON.stringify(kept))).toBeLessThan(256 * 1024);
    },
  );

  test('is recorded without the secrets of the worker', async () => {
    process.env['DOCUMENT_TEST_TOKEN'] = 'canary-document-4711';
    learnSecrets({ env: process.env });
    try {
      const text = 'the key is canary-document-4711';
      const recorded = JSON.stringify(await messagesFor([{ text, id: text, source: text }]));
      expect(recorded).not.toContain('canary');
      expect(recorded).toContain('the key is [redacted DOCUMENT_TEST_TOKEN]');
    } finally {
      delete process.env['DOCUMENT_TEST_TOKEN'];
    }
  });

  test('is truncated in the history and whole in the store if it is large', async () => {
    const [small, large] = await messagesFor(['s'.repeat(20_000), 'l'.repeat(120_000)]);
    expect(small?.blob).toBeUndefined();
    expect(large?.blob).toEqual({ sha256: sha256Hex('l'.repeat(120_000)), bytes: 120_000 });
    expect(large?.text.length).toBeLessThan(17_000);
  });
});
