import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { compareSides, program } from '../../test/support/ported-page.js';

const folder = fileURLToPath(new URL('.', import.meta.url));
// Mastra needs Node 22, which `npm ci` installs here.
const node = program({ command: `${folder}node_modules/.bin/node`, folder });
const python = program({ command: `${folder}.venv/bin/python`, folder });

test('LangGraph and perdure write again with the feedback until the judge agrees', async () => {
  const steps = [
    replyText('A cat.'),
    replyText('{"funny":false,"feedback":"add a hat"}'),
    replyText('A cat in a hat.'),
    replyText('{"funny":true,"feedback":""}'),
  ];
  const { theirs, ours } = await compareSides('langgraph', steps, node);
  expect(ours).toEqual(theirs);
});

test('the OpenAI Agents SDK and perdure ask for approval, and then make the refund', async () => {
  const steps = [replyCall('refund', { order: 17, euros: 80 }), replyText('It is refunded.')];
  const { theirs, ours } = await compareSides('openai-agents', steps, node);
  expect(ours).toEqual(theirs);
});

test('Mastra and perdure call the tool and answer', async () => {
  const steps = [replyCall('stock', { product: 'lamp' }), replyText('There are 3 lamps.')];
  const { theirs, ours } = await compareSides('mastra', steps, node);
  expect(ours).toEqual(theirs);
});

test('LlamaBot and perdure return a person of the schema', async () => {
  const { theirs, ours } = await compareSides(
    'llamabot',
    [replyText('{"name":"Ann","age":40}')],
    python,
  );
  expect(ours).toEqual(theirs);
});
