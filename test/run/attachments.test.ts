import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fileBlobStore } from '../../src/storage/file-stores.js';
import { dialogue } from '../../src/cli/run-view/dialogue.js';
import { palette } from '../../src/cli/format/format.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { InputError } from '../../src/core/errors.js';
import type { Attachment, PromptMessage } from '../../src/core/transcript/messages.js';
import { ModelError, type ModelRequest } from '../../src/models/model.js';
import { clerk, clientOf } from '../support/clerk.js';
import { replyTo } from '../support/conversation.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

const PNG = Buffer.from('89504e470d0a1a0a00000000', 'hex');
const byUrl = { type: 'image', url: 'https://example.org/a.png' } as const;
let rig: Rig;
let client: PerdureClient;
/** For each request: its messages, and the bytes behind their references. */
let seen: { readonly messages: readonly PromptMessage[]; readonly files: readonly string[] }[] = [];

beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
  const model = {
    call: async (request: ModelRequest) => {
      const { messages, files } = request;
      const attached = messages.flatMap((one) =>
        one.role === 'user' ? (one.attachments ?? []) : [],
      );
      const kept = attached.flatMap((one) => ('blob' in one ? [one.blob] : []));
      const read = await Promise.all(kept.map(async (blob) => (await files?.(blob)) ?? ''));
      seen.push({ messages: structuredClone(messages), files: read });
      return replyTo(request);
    },
  };
  const picky = {
    call: async (request: ModelRequest) => {
      if (request.messages.some((one) => one.role === 'user' && one.attachments)) {
        throw new ModelError('Could not process image', { kind: 'request', type: 'invalid_image' });
      }
      return replyTo(request);
    },
  };
  const agents = [clerk(), defineAgent({ name: 'picky', instructions: 'look', model: 'picky' })];
  const models = { m: model, picky };
  await rig.worker(agents, { models, segment: { steps: 1, bytes: 2_000_000 } });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

describe('an attachment of a message', () => {
  test('is sent to the model with it, in every later request and segment, and in a fork', async () => {
    seen = [];
    const image = await client.attach(PNG, { name: 'a.png' });
    expect(image).toMatchObject({ type: 'image', mediaType: 'image/png', name: 'a.png' });
    const id = `attached-${randomUUID()}`;
    const given = { message: 'look', open: true, id, attachments: [image] };
    await client.start('clerk', given);
    await client.result(id, { turn: 1 });
    await client.send(id, { message: 'and this?', attachments: [byUrl] });
    await client.result(id, { turn: 2 });
    await client.close(id);
    await rig.end(rig.client.workflow.getHandle(id));
    expect((await segmentsOf(rig.client, id)).length).toBeGreaterThan(1);
    // The reference, which is public, is useless in another run.
    const { messages: said } = await client.transcript(id);
    const [{ attachments: bound = [] } = {}] = said.filter((one) => one.role === 'user');
    expect(bound).toMatchObject([{ name: 'a.png' }]);
    expect(bound).not.toEqual([image]);
    const look = { role: 'user', text: 'look', attachments: bound };
    expect(seen[0]).toEqual({ messages: [look], files: [PNG.toString('base64')] });
    expect(seen[1]).toEqual({
      messages: [
        look,
        { role: 'assistant', text: 'done: look' },
        { role: 'user', text: 'and this?', attachments: [byUrl] },
      ],
      files: [PNG.toString('base64')],
    });
    const { messages } = await client.transcript(id);
    expect(messages[0]).toMatchObject(look);
    const lines = dialogue(messages, { full: false, paint: palette(false) });
    expect(lines).toContain('  + image a.png (image/png, 12 B)');
    expect(lines).toContain('  + image https://example.org/a.png');

    const forked = await client.fork(id, { message: 'again', attachments: [byUrl] });
    await client.result(forked);
    expect(seen[2]?.messages.slice(1, 3)).toEqual(seen[1]?.messages.slice(1));
    expect(seen[2]?.messages[0]).toMatchObject({ text: 'look', attachments: [{ name: 'a.png' }] });
    expect(seen[2]?.messages[0]).not.toEqual(look);
    expect(seen[2]?.messages.at(-1)).toMatchObject({ text: 'again', attachments: [byUrl] });
    expect(seen[2]?.files).toEqual([PNG.toString('base64')]);
    const again = await client.fork(forked, { message: 'once more' });
    await client.result(again);
    expect(seen[3]?.files).toEqual([PNG.toString('base64')]);

    // Knowing the hash from a history, or the file itself, does not give access to an image.
    const other = `attached-${randomUUID()}`;
    await expect(
      client.start('clerk', { message: 'x', id: other, attachments: bound }),
    ).rejects.toThrow(`attachments: attachment`);
    const blobs = fileBlobStore(join(rig.home, 'blobs'));
    const raw = { ...image, blob: await blobs.put(PNG.toString('base64')) };
    for (const stolen of [bound, [image], [raw]]) {
      const { outcome } = await rig.run({ agent: 'clerk', message: 'x', attachments: stolen });
      expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
      expect(outcome.error).toMatch(/attachment/);
    }
    expect(seen).toHaveLength(4);
  });

  test.each([
    ['x', 'attachments: expected a list, got "x"'],
    [[], 'attachments: expected 1–20, got 0'],
    [
      [{ type: 'image', url: 'file:///etc/passwd' }],
      'attachments[0]: expected an attachment, got {"type":"image"',
    ],
    [[byUrl, { type: 'file', mediaType: 'text/csv', blob: { sha256: 'x', bytes: 1 } }], '[1]'],
    [[{ ...byUrl, path: '/etc/passwd' }], 'attachments[0]'],
  ])('is refused if it is %j', async (attachments, problem) => {
    const { outcome } = await rig.run({ agent: 'clerk', message: 'x', attachments });
    expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
    expect(outcome.error).toContain(problem);
    const given = { message: 'x', attachments: attachments as readonly Attachment[] };
    await expect(client.send('any', given, { start: { agent: 'clerk' } })).rejects.toThrow(problem);
  });

  test('is not readable through a context that a caller names', async () => {
    const blobs = fileBlobStore(join(rig.home, 'blobs'));
    const contextBlob = await blobs.put('{"secret":4711}');
    const { outcome } = await rig.run({ agent: 'clerk', message: 'x', contextBlob });
    expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
    expect(outcome.error).toContain('contextBlob: expected only from an agent that calls another');
  });

  test('is refused without a message, and if its type is unknown', async () => {
    const { outcome } = await rig.run({ agent: 'clerk', open: true, attachments: [byUrl] });
    expect(outcome.error).toContain('expected a message that they belong to');
    await expect(client.attach(Buffer.from('what?'))).rejects.toThrow(InputError);
    const text = await client.attach(Buffer.from('a,b'), { mediaType: 'text/csv' });
    expect(text.type).toBe('file');
  });
});

describe('a picture that the provider refuses', () => {
  test('fails its turn, and no later one', async () => {
    const image = await client.attach(PNG, { name: 'a.png' });
    const id = `refused-${randomUUID()}`;
    await client.start('picky', { message: 'look', open: true, id, attachments: [image] });
    expect(await client.result(id, { turn: 1 })).toMatchObject({
      status: 'failed',
      reason: 'error',
    });
    await client.send(id, 'hello');
    expect(await client.result(id, { turn: 2 })).toMatchObject({ status: 'completed' });
    const { messages } = await client.transcript(id);
    expect(messages[0]).toMatchObject({ text: 'look', refused: 'attachments' });
    expect(messages[0]).toHaveProperty('attachments');
    const shown = dialogue(messages, { full: false, paint: palette(false) }).join('\n');
    expect(shown).toContain('attachments refused by the provider');
  });
});
