import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import type { RunsAccess } from '../../src/cli/mcp/owner.js';
import { runsServer } from '../../src/cli/mcp/runs-server.js';
import { openStores } from '../../src/storage/file-stores.js';
import type { Rig } from './rig.js';

/** Connects a client to the MCP server of the command, in this process. The client must be closed. */
export async function connectToRuns(rig: Rig, given: Partial<RunsAccess> = {}): Promise<Client> {
  const server = runsServer({
    options: {},
    env: {},
    agents: [],
    taskQueue: rig.taskQueue,
    client: async () => rig.client,
    ...openStores(rig.home),
    ensureWorker: async () => false,
    owner: async () => 'me',
    allRuns: false,
    canDecide: false,
    ...given,
  });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '1' });
  await Promise.all([server.connect(theirs), client.connect(ours)]);
  return client;
}
