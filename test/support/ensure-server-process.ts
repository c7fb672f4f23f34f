/**
 * A command that needs a server, as a separate process: `ensure-server-process.ts HOME`. Prints the
 * handle as one line of JSON and runs until it is killed.
 */
import { ensureServer } from '../../src/server/ensure-server.js';

const [home = ''] = process.argv.slice(2);
const handle = await ensureServer({ home, adoptDefault: false });
console.log(JSON.stringify(handle));
setInterval(() => {}, 1 << 30);
