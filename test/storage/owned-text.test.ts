import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readRunContext } from '../../src/activities/activity-context.js';
import {
  attachedBytes,
  attachedText,
  bindAttachments,
  copyToRun,
  storeUpload,
  storeContext,
} from '../../src/storage/owned-text.js';
import type { BlobStore } from '../../src/storage/blob-store.js';
import { fileBlobStore } from '../../src/storage/file-stores.js';
import type { Attachment } from '../../src/core/transcript/messages.js';
import { readResultTool } from '../../src/tools/built-in/default-tools.js';
import { callTool } from '../tools/support.js';

async function freshStore(): Promise<BlobStore> {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-owned-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return fileBlobStore(folder);
}

function image(blob: { readonly sha256: string; readonly bytes: number }): Attachment {
  return { type: 'image', mediaType: 'image/png', blob };
}

test('an attachment is readable only in its run, and only after it was sent', async () => {
  const blobs = await freshStore();
  const upload = await storeUpload(blobs, 'QUJD');
  expect((await storeUpload(blobs, 'QUJD')).sha256).not.toBe(upload.sha256);
  const [bound] = await bindAttachments(blobs, 'mine', [image(upload)]);
  if (bound === undefined || !('blob' in bound)) throw new Error('it is by reference');
  expect(await bindAttachments(blobs, 'mine', [image(upload)])).toEqual([bound]);
  expect(await bindAttachments(blobs, 'mine', [bound])).toEqual([bound]);
  expect(await attachedText(blobs, 'mine', bound.blob)).toBe('QUJD');
  expect(attachedBytes(bound.blob)).toBe(3);
  const raw = await blobs.put('QUJD');
  for (const [run, blob] of [
    ['other', bound.blob],
    ['mine', upload],
    ['mine', raw],
  ] as const) {
    await expect(attachedText(blobs, run, blob)).rejects.toThrow('does not belong to run');
  }
  await expect(bindAttachments(blobs, 'other', [bound])).rejects.toThrow('does not belong to run');
  await expect(bindAttachments(blobs, 'mine', [image(raw)])).rejects.toThrow('does not belong');
  const handed = await copyToRun(
    blobs,
    { kind: 'attachment', from: ['older', 'mine'], to: 'fork' },
    bound.blob,
  );
  expect(await attachedText(blobs, 'fork', handed)).toBe('QUJD');
  expect(
    await copyToRun(blobs, { kind: 'attachment', from: ['older'], to: 'fork' }, bound.blob),
  ).toEqual(bound.blob);
  // A fork that continued without it could never read it, not even after it is restored.
  const lost = { sha256: 'ab'.repeat(32), bytes: 100 };
  await expect(
    copyToRun(blobs, { kind: 'attachment', from: ['mine'], to: 'fork' }, lost),
  ).rejects.toThrow('is missing');
});

test('a context is readable only in its own run, and other texts are not readable as a context', async () => {
  const blobs = await freshStore();
  const ref = await storeContext(blobs, { context: { tenant: 7 }, root: 'mine' });
  const read = (contextBlob: object) =>
    readRunContext({ contextBlob: { ...ref, ...contextBlob } }, blobs);
  expect(await read({ root: 'mine' })).toEqual({ tenant: 7 });
  const secret = await blobs.put('{"secret":4711}');
  for (const foreign of [{}, { root: 'other' }, { ...secret, root: 'mine' }]) {
    await expect(read(foreign)).rejects.toThrow('is not the context of this run');
  }
});

test('read_result returns results of tools, but neither attachments nor contexts', async () => {
  const blobs = await freshStore();
  const tool = readResultTool(blobs);
  const [attached] = await bindAttachments(blobs, 'mine', [
    image(await storeUpload(blobs, 'QUJD')),
  ]);
  if (attached === undefined || !('blob' in attached)) throw new Error('it is by reference');
  const context = await storeContext(blobs, { context: { tenant: 7 }, root: 'mine' });
  const result = await blobs.put('a long result');
  expect(await callTool(tool, { ref: result.sha256 })).toContain('a long result');
  for (const { sha256: ref } of [attached.blob, context]) {
    await expect(callTool(tool, { ref, offset: 100 })).rejects.toThrow(
      'ref: expected the reference of a tool result',
    );
  }
});
