/**
 * Appends to an archive as a process of its own: `archive-writer.ts FOLDER BATCH COUNT`. Tells
 * `ready`, starts when it is told to, tells the number of messages that are safe after each batch,
 * and appends batches of BATCH messages until there are COUNT.
 */
import { once } from 'node:events';
import { fileArchive } from '../../src/storage/file-archive.js';
import { archivedMessages, archivedRun } from './archived.js';

const [folder = '', batch = '', count = ''] = process.argv.slice(2);
const archive = fileArchive(folder);
process.send?.('ready');
await once(process, 'message');
for (let from = 0; from < Number(count); from += Number(batch)) {
  const to = Math.min(from + Number(batch), Number(count));
  await archive.append(archivedRun, archivedMessages(from, to));
  process.send?.(to);
}
process.disconnect();
