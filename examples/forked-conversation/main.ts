import { createClient } from 'perdure';
import { whatIf } from './what-if.js';

const client = await createClient();
for (const line of await whatIf(client)) console.log(line);
await client.disconnect();
