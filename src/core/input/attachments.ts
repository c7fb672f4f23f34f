import { isObject } from '../json.js';
import type { Attachment } from '../transcript/messages.js';
import { show } from '../text/format-value.js';

/** Maximum attachments per message, because each is part of every later request. */
const MAX_ATTACHMENTS = 20;
const MAX_WORD_CHARACTERS = 2_000;
const EXAMPLES =
  'give {"type": "image", "url": "https://…"} or {"type": "file", "mediaType": "application/pdf", "blob": {"sha256": "…", "bytes": 1}}';

/** Returns what is wrong with the attachments of a message, or null. */
export function checkAttachments(value: unknown): string | null {
  if (value === undefined) return null;
  if (!Array.isArray(value)) {
    return `attachments: expected a list, got ${show(value)}; ${EXAMPLES}`;
  }
  if (value.length === 0 || value.length > MAX_ATTACHMENTS) {
    return `attachments: expected 1–${MAX_ATTACHMENTS}, got ${value.length}; omit the field if there are none`;
  }
  const wrong = value.findIndex((each) => !isAttachment(each));
  if (wrong === -1) return null;
  return `attachments[${wrong}]: expected an attachment, got ${show(value[wrong])}; ${EXAMPLES}`;
}

function isAttachment(value: unknown): value is Attachment {
  if (!isObject(value)) return false;
  const { type, url, blob, mediaType, name, ...rest } = value;
  if (Object.keys(rest).length > 0) return false;
  if (url !== undefined) {
    const alone = blob === undefined && mediaType === undefined && name === undefined;
    return alone && type === 'image' && isWord(url) && /^https?:\/\//.test(url);
  }
  if (type !== 'image' && type !== 'file') return false;
  return isBlob(blob) && isWord(mediaType) && (name === undefined || isWord(name));
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_WORD_CHARACTERS;
}

function isBlob(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { sha256, bytes, ...rest } = value;
  const isHash = typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256);
  return isHash && Number.isInteger(bytes) && Object.keys(rest).length === 0;
}
