import type {
  Base64ImageSource,
  CacheControlEphemeral,
  ContentBlockParam,
  DocumentBlockParam,
  ImageBlockParam,
  ToolResultBlockParam,
} from '@anthropic-ai/sdk/resources/messages';
import type { Attachment, PromptMessage } from '../../core/transcript/messages.js';
import { ModelError } from '../model-error.js';
import { createPart, type AttachedData } from '../wire/attachment-parts.js';
import { EMPTY_MESSAGE } from '../wire/content.js';
import type { Replay } from '../wire/replayed-items.js';
import { createAssistantBlocks, toTextBlocks } from './assistant.js';

/** A message in the form of Anthropic's API, always with blocks. */
export interface WireMessage {
  readonly role: 'user' | 'assistant';
  content: ContentBlockParam[];
}

interface References {
  readonly data: AttachedData;
  readonly replay: Replay;
}

/** Marks the end of a cached prefix; empty for servers that refuse the mark. */
type CacheMark = Partial<typeof CACHED>;

/** Marks the end of a prefix that the provider caches for five minutes. */
export const CACHED: { readonly cache_control: CacheControlEphemeral } = {
  cache_control: { type: 'ephemeral' },
};

/**
 * Writes messages for Anthropic's API: user and assistant alternate, so neighbors of one role
 * become one message, and results of calls are blocks of the user.
 */
export function createMessages(
  prompt: readonly PromptMessage[],
  { mark = CACHED, ...references }: References & { readonly mark?: CacheMark },
): readonly WireMessage[] {
  const messages: WireMessage[] = [];
  for (const message of prompt) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const content = createBlocks(message, references);
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) messages.push({ role, content });
  }
  return markCached(messages, mark);
}

/**
 * Marks the end of the newest message of the user, and of the one that ended the previous request.
 */
function markCached(messages: WireMessage[], mark: CacheMark): readonly WireMessage[] {
  for (const message of messages.filter(({ role }) => role === 'user').slice(-2)) {
    const last = message.content.pop();
    // A user's blocks are texts, images, documents, and results; all of them accept the mark.
    if (last !== undefined) message.content.push({ ...last, ...mark });
  }
  return messages;
}

function createBlocks(message: PromptMessage, { data, replay }: References): ContentBlockParam[] {
  switch (message.role) {
    case 'user': {
      const { text, attachments = [] } = message;
      const blocks = [
        ...attachments.map((one) => createAttachment(one, data)),
        ...toTextBlocks(text),
      ];
      return blocks.length === 0 ? toTextBlocks(EMPTY_MESSAGE) : blocks;
    }
    case 'tool':
      return [createResult(message, data)];
    case 'assistant':
      return createAssistantBlocks(message, replay);
  }
}

function createResult(
  { callId, text, attachments = [] }: Extract<PromptMessage, { role: 'tool' }>,
  data: AttachedData,
): ToolResultBlockParam {
  const result: ToolResultBlockParam = { type: 'tool_result', tool_use_id: callId };
  if (attachments.length === 0) return text.trim() === '' ? result : { ...result, content: text };
  return {
    ...result,
    content: [...toTextBlocks(text), ...attachments.map((one) => createAttachment(one, data))],
  };
}

const DATA_URL = /^data:([^;,]+);base64,/;

function createAttachment(
  attachment: Attachment,
  data: AttachedData,
): ImageBlockParam | DocumentBlockParam {
  const part = createPart(attachment, data);
  const url =
    part.type === 'image_url'
      ? part.image_url.url
      : part.type === 'file'
        ? part.file.file_data
        : '';
  const head = DATA_URL.exec(url.slice(0, 200));
  if (head === null) return { type: 'image', source: { type: 'url', url } };
  const mediaType = head[1] ?? '';
  const base64 = url.slice(head[0].length);
  if (part.type === 'file') return createDocument(part.file.filename, { mediaType, base64 });
  if (isImageType(mediaType)) {
    return { type: 'image', source: { type: 'base64', media_type: mediaType, data: base64 } };
  }
  throw unsupported(mediaType, 'attach the image as PNG, JPEG, GIF, or WebP');
}

function createDocument(
  title: string,
  { mediaType, base64 }: { readonly mediaType: string; readonly base64: string },
): DocumentBlockParam {
  if (mediaType === 'application/pdf') {
    return {
      type: 'document',
      title,
      source: { type: 'base64', media_type: mediaType, data: base64 },
    };
  }
  if (!/^text\/|[/+]json$|[/+]xml$/.test(mediaType)) {
    throw unsupported(mediaType, 'attach the file as a PDF or as text');
  }
  const text = Buffer.from(base64, 'base64').toString();
  return {
    type: 'document',
    title,
    source: { type: 'text', media_type: 'text/plain', data: text },
  };
}

function isImageType(type: string): type is Base64ImageSource['media_type'] {
  return ['image/png', 'image/jpeg', 'image/gif', 'image/webp'].includes(type);
}

function unsupported(mediaType: string, fix: string): ModelError {
  const message = `Anthropic's API does not accept attachments of type ${mediaType}; ${fix}`;
  return new ModelError(message, { kind: 'request', type: 'bad_attachment' });
}
