import { describe, expect, test, vi } from 'vitest';
import { findStorageFault } from '../../src/activities/storage-faults.js';
import {
  BlobError,
  type BlobStore,
  readFor,
  StoreFault,
  workerStore,
} from '../../src/storage/blob-store.js';
import { sha256Hex } from '../../src/core/text/json.js';
import { readAttachments } from '../../src/models/wire/attachment-parts.js';
import { getCapabilities } from '../../src/models/known-models.js';
import { getMaker, readStoredItems } from '../../src/models/wire/opaque-fields.js';

const FAST = { retryPausesMs: [1] };
const sha256 = sha256Hex('whole');
function store(get: BlobStore['get']): BlobStore {
  return { get, put: () => Promise.reject(new Error('EPIPE')) };
}

const missing = store(() => Promise.reject(new BlobError('gone', { kind: 'missing' })));

/** Without delays between attempts. */
async function failureOf(work: () => Promise<unknown>): Promise<unknown> {
  vi.useFakeTimers();
  try {
    const failure = work().then(
      () => null,
      (error: unknown) => error,
    );
    await vi.runAllTimersAsync();
    return await failure;
  } finally {
    vi.useRealTimers();
  }
}

const FAILING: readonly (readonly [string, BlobStore['get'], string, RegExp])[] = [
  ['another text', async () => 'whol3', 'damaged', /is damaged: .*restore it from a backup/],
  [
    'an error of its own',
    async () => await Promise.reject(new TypeError('fetch failed')),
    'unreadable',
    /fetch failed/,
  ],
  [
    'its word that it is missing',
    async () => await Promise.reject(new BlobError('no', { kind: 'missing' })),
    'missing',
    /no/,
  ],
  [
    'silence',
    (): Promise<string> => new Promise(() => undefined),
    'unreadable',
    /no answer within 15 s; check the disk/,
  ],
];

describe('workerStore', () => {
  test('retries a failed read and returns the text', async () => {
    const get = vi
      .fn<BlobStore['get']>()
      .mockRejectedValueOnce(new Error('ECONNRESET'))
      .mockResolvedValue('whole');
    expect(await workerStore(store(get), FAST).get({ sha256 })).toBe('whole');
    expect(get).toHaveBeenCalledTimes(2);
  });

  test.each(FAILING)(
    'rejects, naming the blob and its purpose, for %s',
    async (_what, get, kind, message) => {
      const failure = await failureOf(() =>
        readFor('the test', { sha256 }, workerStore(store(get), FAST)),
      );
      expect(failure).toBeInstanceOf(StoreFault);
      expect(failure).toMatchObject({ kind, sha256, message: expect.stringMatching(message) });
      expect(findStorageFault(failure)).toMatchObject({ blob: sha256 });
      expect(String(failure)).toContain(`the test cannot be read: blob ${sha256}`);
    },
  );

  test('converts every error of a write into an error of the store', async () => {
    const failure = await failureOf(() => workerStore(store(async () => '')).put('x'));
    expect(failure).toMatchObject({ name: 'BlobError', kind: 'unwritable', message: 'EPIPE' });
  });
});

describe('a blob that a model adapter cannot read is a fault of the storage', () => {
  const files = () => workerStore(missing, FAST).get({ sha256 });
  const blob = { sha256, bytes: 5 };
  const request = {
    model: 'm',
    instructions: '',
    tools: [],
    toolChoice: 'auto',
    settings: {},
  } as const;

  test('for an attachment', async () => {
    const image = { type: 'image', mediaType: 'image/png', blob } as const;
    const messages = [{ role: 'user', text: '', attachments: [image] }] as const;
    const all = { ...getCapabilities('gpt-4o', {}), images: true };
    const failure = await failureOf(() => readAttachments({ ...request, messages, files }, all));
    expect(findStorageFault(failure)).toMatchObject({
      blob: sha256,
      message: expect.stringMatching(/attached image.*gone/),
    });
  });

  test('for items of a provider', async () => {
    const from = getMaker({ baseUrl: 'http://x', model: 'm' });
    const messages = [{ role: 'assistant', text: '', provider: { from, blob } }] as const;
    const failure = await failureOf(() => readStoredItems({ ...request, messages, files }, from));
    expect(findStorageFault(failure)).toMatchObject({
      blob: sha256,
      message: expect.stringMatching(/earlier reply cannot be read.*gone/),
    });
  });
});
