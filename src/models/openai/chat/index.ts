import { isObject } from '../../../core/json.js';
import { readAttachments } from '../../attachments.js';
import type { OpenAiApi } from '../api.js';
import { refuseNative } from '../native-tools.js';
import { parseCompletion } from './reply.js';
import { sentBy } from '../refusals.js';
import { wireRequest } from './request.js';
import { assembleStream } from './stream.js';
import { makerOf, readStoredItems } from '../replayed-items.js';

/** Chat Completions: what nearly every server speaks. */
export const chatApi: OpenAiApi = {
  path: '/chat/completions',
  async preparation(request, { capabilities, baseUrl }) {
    refuseNative(request, "its entry in `models` of the config needs api: 'responses'");
    const from = makerOf({ baseUrl, model: request.model }, 'chat');
    const [data, stored] = await Promise.all([
      readAttachments(request, capabilities),
      readStoredItems(request, from),
    ]);
    return (asked, { stream }) => {
      const body = wireRequest(asked, { stream, capabilities, data, returning: { from, stored } });
      return { body, sent: () => sentBy(asked, body) };
    };
  },
  isAnswer: (value) => isObject(value) && Array.isArray(value['choices']),
  read: parseCompletion,
  assemble: (tell) => assembleStream(tell),
};
