import { isObject } from '../core/json.js';
import { readAttachments } from './attachments.js';
import type { OpenAiApi } from './openai-api.js';
import { refuseNative } from './openai-native-tools.js';
import { parseCompletion } from './openai-reply.js';
import { sentBy } from './openai-refusals.js';
import { wireRequest } from './openai-request.js';
import { assembleStream } from './openai-stream.js';

/** Chat Completions: what nearly every server speaks. */
export const chatApi: OpenAiApi = {
  path: '/chat/completions',
  async preparation(request, { capabilities }) {
    refuseNative(request, "its entry in `models` of the config needs api: 'responses'");
    const data = await readAttachments(request, capabilities);
    return (asked, { stream }) => {
      const body = wireRequest(asked, { stream, capabilities, data });
      return { body, sent: () => sentBy(asked, body) };
    };
  },
  isAnswer: (value) => isObject(value) && Array.isArray(value['choices']),
  read: parseCompletion,
  assemble: (tell) => assembleStream(tell),
};
