import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import {
  attemptReport,
  decideFailure,
  modelFailure,
} from '../../src/activities/model/model-failures.js';
import type { ModelError } from '../../src/models/model.js';
import { openAiModel, type OpenAiModelOptions } from '../../src/models/openai/model.js';
import {
  replyCompletion,
  replyError,
  replyRaw,
  replyReset,
  replyText,
  type Reply,
} from '../../src/testing/replies.js';
import { failureOf, request, stubWith } from './support.js';

const KEY = 'canary-4f9a1c77-key';
const PROMPT = 'canary-prompt-83b1';

/**
 * Everything that could leave the activity: message, stack, fields, and the failure for Temporal.
 */
function allOf(error: ModelError): string {
  const decision = decideFailure(error, { attempt: 1, elapsedMs: 0, random: () => 0 });
  const report = attemptReport(error, decision, { attempt: 1, at: 0 });
  const failure = modelFailure(decision, report);
  return inspect([error, report, failure, error.stack, failure.details], {
    depth: 20,
    showHidden: true,
    maxStringLength: null,
  });
}

const echo = `You sent Authorization: Bearer ${KEY} and key ${KEY}, also sk-abc123456789`;

const ROWS: Record<string, { readonly step: Reply; readonly options?: OpenAiModelOptions }> = {
  'a refused key that is echoed': { step: replyError(401, { message: echo }) },
  'an echo in a code': { step: replyError(400, { code: KEY, type: KEY }) },
  'an echo in a page': { step: replyRaw(`<p>${echo}</p>`, { status: 502 }) },
  'an echo in a page with status 200': { step: replyRaw(`<p>${echo}</p>`) },
  'an echo in broken JSON': { step: replyRaw(`{"x": "${echo}`) },
  'an echo in an odd completion': { step: replyCompletion({ said: echo }) },
  'an echo in an empty reply': {
    step: replyCompletion({ choices: [{ message: { content: null, note: echo } }] }),
  },
  'an echo in an error within a stream': {
    step: replyText('x', {
      sse: { malformed: { event: 1, data: JSON.stringify({ error: { message: echo } }) } },
    }),
    options: { stream: true },
  },
  'an echo in a broken stream': {
    step: replyText('x', { sse: { malformed: { event: 1, data: echo } } }),
    options: { stream: true },
  },
  'a reset connection': { step: replyReset() },
  'a cut answer': { step: replyText('x'.repeat(99), { cut: { afterBytes: 9, how: 'close' } }) },
  'a timeout': {
    step: replyText('x', { holdBeforeHeaders: 'never' }),
    options: { timeoutMs: 500 },
  },
};

test.each(Object.entries(ROWS))(
  'neither key nor prompt leaves with %s',
  async (_name, { step, options }) => {
    const stub = await stubWith(step);
    const model = openAiModel({ apiKey: KEY, baseUrl: stub.baseUrl, ...options });
    const modelRequest = request({ messages: [{ role: 'user', text: PROMPT }] });
    const error = await failureOf(
      model.call(modelRequest, { signal: new AbortController().signal }),
    );
    const text = allOf(error);
    expect(stub.requests[0]?.headers.authorization).toContain(KEY);
    expect(stub.requests[0]?.text).toContain(PROMPT);
    expect(text).not.toContain(KEY);
    expect(text).not.toContain('sk-abc');
    expect(text).not.toContain(PROMPT);
    expect(text).not.toContain('Bearer c');
  },
);

test('a key is hidden even if the text is truncated within it', async () => {
  const stub = await stubWith(replyError(400, { message: `${'x'.repeat(290)} ${KEY}` }));
  const model = openAiModel({ apiKey: KEY, baseUrl: stub.baseUrl });
  const error = await failureOf(model.call(request(), { signal: new AbortController().signal }));
  expect(allOf(error)).not.toContain('canary');
});
