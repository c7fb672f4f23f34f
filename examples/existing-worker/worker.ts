// Adds an agent to your own worker: its workflows and activities do not change.
//   perdure dev            # any Temporal server will do; this one prints its address
//   TEMPORAL_ADDRESS=127.0.0.1:7233 PERDURE_MODEL=demo node --import tsx examples/existing-worker/worker.ts
//   temporal workflow start --type review --task-queue applications --input '"a-1"'
import { fileURLToPath } from 'node:url';
import { NativeConnection, Worker } from '@temporalio/worker';
import { perdurePlugin } from 'perdure/worker';
import * as activities from './activities.js';
import { reviewer } from './agents.js';

const connection = await NativeConnection.connect({
  address: process.env['TEMPORAL_ADDRESS'] ?? '127.0.0.1:7233',
});
const worker = await Worker.create({
  connection,
  taskQueue: 'applications',
  workflowsPath: fileURLToPath(new URL('./workflows.ts', import.meta.url)),
  activities,
  plugins: [perdurePlugin({ agents: [reviewer] })],
});
await worker.run();
