import { Hono } from 'hono';
import { streamSSE } from 'hono/streaming';
import { InputError, type PerdureClient } from 'perdure';
import { NoRunError, RefusedError } from 'perdure/client';
import { page } from './page.js';

/**
 * The routes of a web chat. The server has no state: a conversation is a run, and a returning
 * reader sends `Last-Event-ID` to report what it has seen, so the server may restart at any time.
 */
export function createApp(client: PerdureClient): Hono {
  const app = new Hono();

  app.get('/', (context) => context.html(page));

  // The browser chooses the id of each message, so a message that is sent twice is still one
  // message.
  app.put('/conversations/:id/messages/:message', async (context) => {
    const { id, message } = context.req.param();
    const { text } = await context.req.json<{ text: string }>();
    const start = { agent: 'guide' };
    const sent = await client.send(runOf(id), { message: text, id: message }, { start });
    return context.json({ delivered: sent.delivered });
  });

  app.get('/conversations/:id/events', async (context) => {
    const run = runOf(context.req.param('id'));
    // Rejects before the stream begins if the conversation does not exist.
    await client.status(run);
    const after = context.req.header('Last-Event-ID');
    return streamSSE(context, async (stream) => {
      const over = new AbortController();
      stream.onAbort(() => over.abort());
      const options = { signal: over.signal, ...(after !== undefined && { after }) };
      for await (const { position, ...event } of client.stream(run, options)) {
        await stream.writeSSE({ id: position, event: event.type, data: JSON.stringify(event) });
      }
    });
  });

  app.onError((error, context) => {
    if (NoRunError.isInstance(error)) return context.json({ error: 'no such conversation' }, 404);
    const isTheirs = InputError.isInstance(error) || RefusedError.isInstance(error);
    return context.json({ error: isTheirs ? error.message : 'try again' }, isTheirs ? 400 : 500);
  });

  return app;
}

/** Web conversations have a prefix of their own, so that no visitor can read another run. */
function runOf(id: string): string {
  return `web-${id}`;
}
