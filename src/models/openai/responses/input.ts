import type { PromptMessage } from '../../../core/transcript/messages.js';
import { attachedPart, type AttachedData, type WirePart } from '../../attachments.js';
import { screenCalls, screenOutput } from '../computer.js';
import { assistantItems, type Item } from './items.js';
import type { Returning } from '../replayed-items.js';

/** What the messages of a request only refer to. */
export interface Referred extends Returning {
  readonly data: AttachedData;
}

function inputPart(part: WirePart): Item {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text };
    case 'image_url':
      return { type: 'input_image', image_url: part.image_url.url, detail: 'auto' };
    case 'file':
      return { type: 'input_file', ...part.file };
  }
}

function userItem(
  { text, attachments = [] }: Extract<PromptMessage, { readonly role: 'user' }>,
  data: AttachedData,
): Item {
  if (attachments.length === 0) return { type: 'message', role: 'user', content: text };
  const parts = attachments.map((attachment) => inputPart(attachedPart(attachment, data)));
  const words: readonly Item[] = text === '' ? [] : [{ type: 'input_text', text }];
  return { type: 'message', role: 'user', content: [...words, ...parts] };
}

/** Messages as input items; equal messages give equal bytes, so a longer conversation begins as a shorter one. */
export function inputItems(messages: readonly PromptMessage[], how: Referred): readonly Item[] {
  const screens = screenCalls(messages, how);
  return messages.flatMap((message): readonly Item[] => {
    switch (message.role) {
      case 'user':
        return [userItem(message, how.data)];
      case 'assistant':
        return assistantItems(message, { ...how, screens });
      case 'tool': {
        const item = screens.get(message.callId);
        if (item !== undefined) return screenOutput(message, { item, data: how.data });
        return [{ type: 'function_call_output', call_id: message.callId, output: message.text }];
      }
    }
  });
}
