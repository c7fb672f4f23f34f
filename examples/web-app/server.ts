import { serve } from '@hono/node-server';
import { createClient } from 'perdure';
import { createApp } from './app.js';

// A visitor proves nothing, so no message of theirs is a decision.
const client = await createClient({ by: 'web', answers: false });
const port = Number(process.env['PORT'] ?? 3000);
serve({ fetch: createApp(client).fetch, hostname: '127.0.0.1', port }, (address) =>
  console.log(`http://127.0.0.1:${address.port}`),
);
