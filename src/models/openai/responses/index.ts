import { isObject } from '../../../core/json.js';
import { readAttachments } from '../../attachments.js';
import type { OpenAiApi } from '../api.js';
import { parseResponse } from './reply.js';
import { refuseComputer, refuseNative, wireNativeTools } from '../native-tools.js';
import { sentInResponses } from './refusals.js';
import { responsesRequest } from './request.js';
import { assembleResponse } from './stream.js';
import { screensIn } from '../computer.js';
import { makerOf, readStoredItems } from '../replayed-items.js';

/** The Responses API, without anything that it keeps: the run's transcript goes out each time. */
export const responsesApi: OpenAiApi = {
  path: '/responses',
  async preparation(request, { capabilities, baseUrl, variable }) {
    if (!capabilities.nativeTools) {
      refuseNative(request, `the model "${request.model}" has none; name one that does`);
    }
    refuseComputer(request, capabilities);
    const native = wireNativeTools(request, variable);
    const from = makerOf({ baseUrl, model: request.model });
    const [data, stored] = await Promise.all([
      readAttachments(request, capabilities, { also: screensIn(request.messages) }),
      readStoredItems(request, from),
    ]);
    return (asked, { stream }) => {
      const body = responsesRequest(asked, { stream, capabilities, data, stored, from, native });
      return { body, sent: () => sentInResponses(asked, body) };
    };
  },
  isAnswer: (value) => isObject(value) && Array.isArray(value['output']),
  read: parseResponse,
  assemble: assembleResponse,
};
