import type { ClientOptions, PerdureClient } from './client/client-types.js';

/**
 * Connects to Temporal and returns a client that starts runs, sends them messages and decisions, and
 * reads them. Rejects with a `NoServerError` if no server answers, and with a `SdkVersionError` if the
 * process has two copies of Temporal's SDK.
 *
 * Importing this function does not load Temporal's client; the first call does.
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
