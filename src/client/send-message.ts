import type { Client } from '@temporalio/client';
import { InputError } from '../core/errors.js';
import type { Ask } from '../core/input/inbox.js';
import { mayAnswer } from '../core/requests/answer-by-message.js';
import type { BlobStore } from '../storage/blob-store.js';
import { askOrStart, askRun, withId, type SentMessage } from '../updates/ask.js';
import { claim } from '../updates/decide.js';
import { createRunInput } from '../updates/start.js';
import { claimAttachments, type MessageInput, storeArtifacts } from './attach.js';
import type { SendOptions } from './client-types.js';
import { idOf, type RunLike } from './control.js';

/** Sends a message to a run, and starts the run if the options say so. */
export async function sendMessage(
  client: Client,
  to: {
    readonly run: RunLike<unknown>;
    readonly message: string | MessageInput;
    readonly taskQueue: string;
    readonly blobs: BlobStore;
    /** No message of the client decides. */
    readonly isMute: boolean;
  },
  { start, by, ...updateOptions }: SendOptions,
): Promise<SentMessage> {
  const id = idOf(to.run);
  const given = typeof to.message === 'string' ? { message: to.message } : to.message;
  const { artifacts, ...fields } = given;
  const stored = await storeArtifacts(to.blobs, id, { artifacts });
  const named = withId({ ...claim(by), ...fields, ...stored, ...answersOf(fields, to.isMute) });
  const message = { ...named, ...(await claimAttachments(to.blobs, id, named)) };
  if (start === undefined) return await askRun(client, id, message, updateOptions);
  const { agent, ...settings } = start;
  const input = createRunInput(agent, { ...claim(by), ...settings, open: true });
  return await askOrStart(client, message, {
    id,
    taskQueue: to.taskQueue,
    input,
    ...updateOptions,
  });
}

/**
 * Returns what a message may decide, and when it was sent if that matters. Throws an `InputError`
 * if it would decide for a client whose messages do not.
 */
function answersOf(
  { answers, message = '' }: Pick<MessageInput, 'answers' | 'message'>,
  isMute: boolean,
): Pick<Ask, 'answers' | 'sentAt'> {
  if (isMute) {
    if (answers === undefined || answers === false) return { answers: false };
    throw new InputError(
      'answers: expected none, because this client was created with answers: false; decide with `resolve`',
    );
  }
  const isBound = answers === false || typeof answers === 'object';
  return isBound || !mayAnswer(message) ? {} : { sentAt: Date.now() };
}
