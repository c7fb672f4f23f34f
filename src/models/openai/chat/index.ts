import { isObject } from '../../../core/json.js';
import type { WireApi } from '../../wire/api.js';
import { readAttachments } from '../../wire/attachment-parts.js';
import { refuseNativeTools } from '../../wire/native-tools.js';
import { getMaker, readStoredItems } from '../../wire/replayed-items.js';
import { findUsage, parseUsage } from '../../wire/usage.js';
import { acceptOddChunks, isFinalUsage, isWholeCompletion, readCompletion } from './odd-forms.js';
import { listChatParameters } from './refusals.js';
import { createChatRequest } from './request.js';
import { assembleCompletion } from './stream.js';

/** Chat Completions, which nearly every server speaks. */
export const chatApi: WireApi = {
  path: '/chat/completions',
  propertyNames: undefined,
  async prepare(request, { capabilities, baseUrl }) {
    refuseNativeTools(request, "set api: 'responses' at its entry in `models` of the config");
    const from = getMaker({ baseUrl, model: request.model }, 'chat');
    const [data, stored] = await Promise.all([
      readAttachments(request, capabilities),
      readStoredItems(request, from),
    ]);
    return (attempt, { stream }) => {
      const replay = { from, stored };
      const body = createChatRequest(attempt, { stream, capabilities, data, replay });
      return { body, sent: () => listChatParameters(attempt, body) };
    };
  },
  isAnswer: (value) => isObject(value) && Array.isArray(value['choices']),
  isWhole: isWholeCompletion,
  isEnd: isFinalUsage,
  readUsage: (value) => (isObject(value) ? parseUsage(findUsage(value)) : undefined),
  read: readCompletion,
  assemble: (emit) => acceptOddChunks(assembleCompletion(emit)),
};
