/** A program that starts a server for tests, and ends it. */
import { startTestServer } from '../../src/testing.js';

const server = await startTestServer();
await server.close();
process.stdout.write('closed\n');
