import { Client, Connection } from '@temporalio/client';
import { eraseFrom } from '../../src/client/erasure/erase-runs.js';
import { openStores } from '../../src/storage/file-stores.js';

/*
 * Erases a run, and kills itself as soon as the first thing of a kind is removed: `archived`, `blob`, or
 * `history`.
 */
const { TEMPORAL_ADDRESS: address = '', PERDURE_HOME: home = '', RUN = '', KILL_ON } = process.env;
const connection = await Connection.connect({ address });
const client = new Client({ connection });
const { archive, blobs } = openStores(home);

async function thenDie<T>(kind: string, done: Promise<T>): Promise<T> {
  const value = await done;
  if (kind === KILL_ON) process.kill(process.pid, 'SIGKILL');
  return value;
}

const [ofArchive, ofBlobs] = [archive.erasure, blobs.erasure];
if (ofArchive === undefined || ofBlobs === undefined) throw new Error('no erasure');
const { workflowService: service } = client;
const remove = service.deleteWorkflowExecution.bind(service);
type Deletion = Parameters<typeof remove>[0];
Object.assign(service, {
  deleteWorkflowExecution: (deletion: Deletion) => thenDie('history', remove(deletion)),
});
await eraseFrom(
  {
    client,
    archive: {
      ...archive,
      erasure: {
        ...ofArchive,
        remove: (run, history) => thenDie('archived', ofArchive.remove(run, history)),
      },
    },
    blobs: {
      ...blobs,
      erasure: {
        ...ofBlobs,
        remove: (ref, before) => thenDie('blob', ofBlobs.remove(ref, before)),
      },
    },
  },
  { runs: [RUN], by: 'eve', grace: 0 },
);
