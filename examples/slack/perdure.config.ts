// A refund desk in Slack: the conversation is a thread, and so are its approvals. See README.md.
import { type Notice, defineAgent, defineConfig, defineTool } from 'perdure';
import { z } from 'zod';
import { callSlack, plain, postText, threadOf } from './slack.js';

const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  input: z.object({ order: z.number().int(), euros: z.number().positive() }),
  effect: 'keyed',
  describe: ({ order, euros }) => `refund ${euros} € to order ${order}`,
  execute: ({ order, euros }) => `refunded ${euros} € for order ${order}`,
});

/** Says in the thread that a person is asked. The button shows the request, and decides nothing. */
async function notify({ run, request }: Notice): Promise<void> {
  const thread = threadOf(run);
  if (thread === null) return;
  const review = {
    type: 'button',
    action_id: 'review',
    text: plain('Review'),
    value: JSON.stringify({ run, request: request.id }),
  };
  await callSlack('chat.postMessage', {
    ...thread,
    text: 'A decision is needed.',
    blocks: [
      { type: 'section', text: plain(`A decision is needed: ${request.shown}`), accessory: review },
    ],
  });
}

export default defineConfig({
  agents: [
    defineAgent({
      name: 'desk',
      instructions: 'You refund orders. Answer briefly.',
      tools: [refund],
      rules: [
        {
          tool: 'refund',
          where: { op: 'over', path: 'euros', value: 50 },
          then: 'ask',
          deciders: 'not_requester',
        },
      ],
      // Retried until Slack has the answer, also over a restart.
      async remember({ outcome }, { run }) {
        const thread = threadOf(run.id);
        // An answer may be empty, and Slack refuses an empty text.
        const none = `This turn has ended without an answer (${outcome.reason}).`;
        const text = outcome.answer?.trim() ? outcome.answer : none;
        if (thread) await postText(thread, 'The answer.', text);
      },
    }),
  ],
  notify,
});
