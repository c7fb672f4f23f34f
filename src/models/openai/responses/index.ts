import { isObject } from '../../../core/json.js';
import type { WireApi } from '../../wire/api.js';
import { readAttachments } from '../../wire/attachment-parts.js';
import { createNativeTools, refuseComputer, refuseNativeTools } from '../../wire/native-tools.js';
import { getMaker, readStoredItems } from '../../wire/replayed-items.js';
import { listScreenshots } from './computer.js';
import { parseUsage } from '../../wire/usage.js';
import { listResponsesParameters } from './refusals.js';
import { parseResponse } from './reply.js';
import { createResponsesRequest } from './request.js';
import { assembleResponse } from './stream.js';

/** The Responses API without its storage: the run's transcript is sent with each request. */
export const responsesApi: WireApi = {
  path: '/responses',
  propertyNames: undefined,
  async prepare(request, { capabilities, baseUrl, variable }) {
    if (!capabilities.nativeTools) {
      refuseNativeTools(
        request,
        `the model "${request.model}" does not support it; use one that does`,
      );
    }
    refuseComputer(request, capabilities);
    const native = createNativeTools(request, variable);
    const from = getMaker({ baseUrl, model: request.model });
    const [data, stored] = await Promise.all([
      readAttachments(request, capabilities, { also: listScreenshots(request.messages) }),
      readStoredItems(request, from),
    ]);
    return (attempt, { stream }) => {
      const replay = { from, stored };
      const options = { stream, capabilities, data, replay, native };
      const body = createResponsesRequest(attempt, options);
      return { body, sent: () => listResponsesParameters(attempt, body) };
    };
  },
  isAnswer: (value) => isObject(value) && Array.isArray(value['output']),
  isWhole: (event) => isObject(event) && Array.isArray(event['output']),
  isEnd: () => false,
  readUsage: (value) => (isObject(value) ? parseUsage(value['usage']) : undefined),
  read: (value, source) => parseResponse(toResponse(value), source),
  assemble: assembleResponse,
};

/** Returns a response in OpenAI's form: some servers wrap it, or send its text alone. */
function toResponse(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { response, output, output_text: text } = value;
  if (output === undefined && isObject(response)) return toResponse(response);
  const items: readonly unknown[] = Array.isArray(output) ? output : [];
  const has = (type: string): boolean =>
    items.some((item) => isObject(item) && item['type'] === type);
  const isMissing = !has('message') && !has('function_call');
  const alone = typeof output === 'string' ? output : text;
  if (!isMissing || typeof alone !== 'string' || alone === '') return value;
  const message = { type: 'message', content: [{ type: 'output_text', text: alone }] };
  return { ...value, output: [...items, message] };
}
