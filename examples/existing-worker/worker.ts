// Adds an agent to your own worker: its workflows and activities do not change.
//   perdure dev            # any Temporal server will do; this one prints its address
//   export TEMPORAL_ADDRESS=127.0.0.1:7233
//   OPENAI_API_KEY=… PERDURE_MODEL=gpt-4.1-mini node --import tsx examples/existing-worker/worker.ts
//   temporal workflow start --type review --task-queue applications --input '"a-1"'
// The last line needs Temporal's CLI (https://docs.temporal.io/cli); a program starts the workflow with
// `client.workflow.start('review', …)` of @temporalio/client. With PERDURE_MODEL=demo, each review ends as
// not accepted: the demo model answers in words, and the reviewer's answer is typed (`output`).
// In a project, the files of examples/ are in node_modules/perdure/examples/.
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
