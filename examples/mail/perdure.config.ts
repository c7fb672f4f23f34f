// A refund desk that asks by mail. The mail links to the request in the console. See README.md.
import { type Notice, defineAgent, defineConfig, defineTool } from 'perdure';
import { z } from 'zod';

const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  input: z.object({ order: z.number().int(), euros: z.number().positive() }),
  effect: 'keyed',
  describe: ({ order, euros }) => `refund ${euros} € to order ${order}`,
  execute: ({ order, euros }) => `refunded ${euros} € to order ${order}`,
});

const TIMEOUT_MS = 8_000;

/**
 * Sends a mail through the HTTP API of Postmark. The link only opens the request: mail programs and
 * scanners follow links by themselves, and a person has to sign in and press a button.
 */
async function notify({ run, request }: Notice): Promise<void> {
  const { CONSOLE_URL = 'http://127.0.0.1:8788', MAIL_FROM, MAIL_TO } = process.env;
  const { MAIL_API = 'https://api.postmarkapp.com/email', MAIL_TOKEN = '' } = process.env;
  const until =
    request.expiresAt === null ? '' : `\nUntil: ${new Date(request.expiresAt).toISOString()}`;
  const response = await fetch(MAIL_API, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'X-Postmark-Server-Token': MAIL_TOKEN },
    body: JSON.stringify({
      From: MAIL_FROM,
      To: MAIL_TO,
      Subject: `A decision is needed: ${request.tool ?? request.kind}`,
      TextBody:
        `${request.shown}\nWhy a person is asked: ${request.why}${until}\n\n` +
        `Review it, and decide: ${CONSOLE_URL}/#/run/${encodeURIComponent(run)}\n`,
    }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  // A notice that fails is sent again.
  if (!response.ok) throw new Error(`the mail was refused: ${response.status}`);
}

export default defineConfig({
  agents: [
    defineAgent({
      name: 'desk',
      instructions: 'You refund orders. Answer briefly.',
      model: process.env['PERDURE_MODEL'] ?? 'demo',
      tools: [refund],
      rules: [
        {
          tool: 'refund',
          where: { op: 'over', path: 'euros', value: 50 },
          then: 'ask',
          deciders: 'not_requester',
          expires: '2 days',
        },
      ],
    }),
  ],
  notify,
});
