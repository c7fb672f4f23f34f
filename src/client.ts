import type { ClientOptions, PerdureClient } from './client/client-types.js';

/**
 * A client for programs that start runs and talk to them. Connects at once and rejects where no server
 * answers. Temporal's client is loaded by the call, not by the door: a configuration comes through it
 * too.
 *
 * @example
 * ```ts
 * import { createClient } from 'perdure';
 *
 * await using client = await createClient();
 * const run = await client.start('files', { message: 'What is in this folder?' });
 * const { status, answer } = await client.result(run);
 * console.log(status, answer);
 * ```
 */
export async function createClient(options: ClientOptions = {}): Promise<PerdureClient> {
  const { openClient } = await import('./client/create-client.js');
  return await openClient(options);
}
