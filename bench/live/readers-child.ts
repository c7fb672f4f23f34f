// Several readers of one run, in a separate process. Its environment sets URL and READERS.
import { get } from 'node:http';
import { serveAsChild } from '../kit/child-side.js';

const { env } = process;
const count = Number(env['READERS'] ?? 1);

/** Resolves when the first event has arrived; then reads to the end. */
async function read(url: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      response.on('data', () => resolve()).on('error', () => undefined);
    }).on('error', reject);
  });
}

await Promise.all(Array.from({ length: count }, () => read(env['URL'] ?? '')));
let end = (): void => undefined;
const stopped = new Promise<void>((resolve) => (end = resolve));
await serveAsChild({ stopped, shutdown: async () => end() });
