import { expect, test, vi } from 'vitest';
import type { Attachment } from '../../src/core/transcript/messages.js';
import { type ModelReply, type ModelRequest, estimateUsage } from '../../src/models/model.js';
import { callOnce, failureOf, modelOf, request, stubWith } from './support.js';
import { replyError, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import type { Stub } from '../../src/testing/stub-server.js';

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64');
const PDF = Buffer.from('%PDF-1.7\n').toString('base64');
const blob = { sha256: 'a'.repeat(64), bytes: 24 };
const other = { sha256: 'b'.repeat(64), bytes: 12 };
const png: Attachment = { type: 'image', blob, mediaType: 'image/png' };
const pdf: Attachment = {
  type: 'file',
  blob: other,
  mediaType: 'application/pdf',
  name: 'a b.pdf',
};

const kept = new Map([
  [blob.sha256, PNG],
  [other.sha256, PDF],
]);

function asking(
  attachments: readonly Attachment[],
  rest: Partial<ModelRequest> = {},
): ModelRequest {
  return request({
    messages: [{ role: 'user', text: 'what is it?', attachments }],
    files: ({ sha256 }) => Promise.resolve(kept.get(sha256) ?? ''),
    ...rest,
  });
}

function ask(stub: Stub, modelRequest: ModelRequest): Promise<ModelReply> {
  return modelOf(stub).call(modelRequest, { signal: new AbortController().signal });
}

test('sends images and files as parts after the text', async () => {
  const stub = await stubWith(replyText('a png'));
  const url = 'https://example.com/cat.png?size=1';
  await ask(stub, asking([png, pdf, { type: 'image', url }]));
  expect(stub.requests[0]?.messages[1]?.content).toEqual([
    { type: 'text', text: 'what is it?' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
    {
      type: 'file',
      file: { filename: 'a b.pdf', file_data: `data:application/pdf;base64,${PDF}` },
    },
    { type: 'image_url', image_url: { url } },
  ]);
});

test('leaves out an empty text, and names a file without a name', async () => {
  const stub = await stubWith(replyText('hm'));
  const { name: _name, ...nameless } = pdf;
  const messages = [{ role: 'user' as const, text: '', attachments: [nameless] }];
  await ask(stub, asking([], { messages }));
  expect(stub.requests[0]?.messages[1]?.content).toMatchObject([
    { type: 'file', file: { filename: 'attachment.pdf' } },
  ]);
});

test('reads each blob once, even if the server refuses a parameter', async () => {
  const files = vi.fn<NonNullable<ModelRequest['files']>>(({ sha256 }) =>
    Promise.resolve(kept.get(sha256) ?? ''),
  );
  const refused = { message: "Unsupported parameter: 'seed'", param: 'seed' };
  const stub = await stubWith(replyError(400, refused), replyText('two'));
  await ask(stub, asking([png, png], { files, settings: { seed: 1 } }));
  expect(files).toHaveBeenCalledTimes(1);
  expect(stub.requestCount).toBe(2);
});

test('sends a plain text without attachments', async () => {
  const stub = await stubWith(replyText('nothing'));
  await ask(stub, asking([]));
  expect(stub.requests[0]?.messages[1]?.content).toBe('what is it?');
});

test('never treats a URL or a path in a text as an attachment', async () => {
  const stub = await stubWith(replyText('no'));
  const text = 'https://example.com/cat.png';
  await ask(stub, request({ messages: [{ role: 'user', text }] }));
  expect(stub.requests[0]?.messages[1]?.content).toBe(text);
});

test('come after the instructions for a model without a system role', async () => {
  const stub = await stubWith(replyText('ok'));
  await ask(stub, asking([png], { without: ['role:system'] }));
  expect(stub.requests[0]?.messages).toMatchObject([
    { role: 'user', content: [{ text: 'Be brief.' }, { text: 'what is it?' }, {}] },
  ]);
});

const text64 = Buffer.from('just text').toString('base64');

test.each<[string, Attachment, string | undefined, RegExp]>([
  [
    'calls itself another type',
    { ...png, mediaType: 'image/jpeg' },
    PNG,
    /is image\/png, not image\/jpeg; attach it as image\/png/,
  ],
  [
    'is a PDF attached as an image',
    { ...png, mediaType: 'application/pdf' },
    PDF,
    /is application\/pdf, not an image; attach it as a file/,
  ],
  [
    'is text attached as an image',
    { ...png, mediaType: 'text/plain' },
    text64,
    /is text\/plain, not an image/,
  ],
  [
    'has no media type',
    { ...png, mediaType: 'png' },
    PNG,
    /"png" is not a media type; give one such as image\/png/,
  ],
  ['has a type that is none', { ...png, mediaType: 'image/png,evil' }, PNG, /is not a media type/],
  ['is not stored as base64', png, '%PNG', /is not stored as base64 text; attach it once more/],
  ['is empty', png, '', /is not stored as base64 text/],
  [
    'lies at no http address',
    { type: 'image', url: 'file:///etc/passwd' },
    undefined,
    /is not an http\(s\) URL; attach the image itself/,
  ],
  ['lies nowhere', { type: 'image', url: 'cat.png' }, undefined, /"cat\.png\\?"? is not an http/],
])('refuses an attachment that %s, and sends nothing', async (_name, attachment, data, message) => {
  const stub = await stubWith();
  const modelRequest = asking([attachment], { files: () => Promise.resolve(data ?? '') });
  const error = await failureOf(ask(stub, modelRequest));
  expect(error.details).toEqual({ kind: 'request', type: 'bad_attachment' });
  expect(error.message).toMatch(message);
  expect(stub.requestCount).toBe(0);
});

test.each([
  [png, 'images', 'no_images'],
  [{ type: 'image' as const, url: 'https://example.com/a.png' }, 'images', 'no_images'],
  [pdf, 'files', 'no_files'],
])('refuses %j for a model that is known to accept no %s', async (attachment, what, type) => {
  const stub = await stubWith();
  const error = await failureOf(ask(stub, asking([attachment], { model: 'gpt-3.5-turbo' })));
  expect(error.details).toEqual({ kind: 'request', type });
  expect(error.message).toContain(
    `The model "gpt-3.5-turbo" does not accept ${what}; use one that does`,
  );
  expect(stub.requestCount).toBe(0);
});

test.each([
  [
    500,
    'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
  ],
  [500, 'Failed to parse messages: Unsupported content part type: "image_url"; messages = [...]'],
  [400, 'Invalid content type. image_url is only supported by certain models.'],
  [400, 'stub is not a multimodal model'],
  [404, 'No endpoints found that support image input'],
])('ends at once if a server answers %i: %s', async (status, message) => {
  const stub = await stubWith(replyError(status, { message, type: 'server_error' }));
  const error = await failureOf(ask(stub, asking([png])));
  expect(error.details).toMatchObject({ kind: 'request', type: 'no_images' });
  expect(error.message).toContain('the model "stub" does not accept images; use one that does');
});

test('an unreadable blob is a retryable error', async () => {
  const stub = await stubWith();
  const files = (): Promise<string> => Promise.reject(new Error('the disk sleeps'));
  const error = await failureOf(ask(stub, asking([png], { files })));
  expect(error.details).toEqual({ kind: 'retry', type: 'attachment_unreadable' });
  expect(error.message).toContain(
    'the attached image aaaaaaaaaaaa cannot be read: the disk sleeps',
  );
});

test('attachments are unreadable if the request has no `files`', async () => {
  const stub = await stubWith();
  const { files: _files, ...without } = asking([pdf]);
  const error = await failureOf(ask(stub, without));
  expect(error.message).toContain('"a b.pdf" cannot be read: the request has no `files`');
});

test('count in an estimate', () => {
  const bare = estimateUsage(asking([]), replyText('x')).inputTokens;
  expect(estimateUsage(asking([png, pdf]), replyText('x')).inputTokens - bare).toBe(3_000);
});

test('are recorded by the scripted model, without the function to read them', async () => {
  const model = scriptedModel([replyText('a cat')]);
  await model.call(asking([png]), { signal: new AbortController().signal });
  expect(model.requests[0]?.messages).toEqual(asking([png]).messages);
  expect(model.requests[0]).not.toHaveProperty('files');
});

test('other errors of a server are unchanged', async () => {
  const stub = await stubWith(replyError(500, { message: 'image decoder crashed' }));
  const error = await failureOf(callOnce(modelOf(stub)));
  expect(error.details.kind).toBe('retry');
});
