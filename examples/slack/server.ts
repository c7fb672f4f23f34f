import { serve } from '@hono/node-server';
import { createSlackApp } from './app.js';

const { PORT = '3000', PERDURE_URL = 'http://127.0.0.1:8788', SLACK_PEOPLE = '' } = process.env;

// U024BE7LH:key-of-ann,U0G9QF9C6:key-of-bob
const people = Object.fromEntries(
  SLACK_PEOPLE.split(',').map((pair) => [pair.split(':', 1)[0] ?? '', pair.replace(/^[^:]*:/, '')]),
);
const { fetch } = createSlackApp({ url: PERDURE_URL, people });
serve({ fetch, hostname: '127.0.0.1', port: Number(PORT) }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}`),
);
