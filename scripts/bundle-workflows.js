// The last part of the build: the workflow code as one file, so that a worker is ready in a moment.
import { writeFile } from 'node:fs/promises';
import { sdkVersion } from '../dist/temporal/sdk.js';
import { bundleWorkflows } from '../dist/worker/bundle.js';

const { code } = await bundleWorkflows();
await writeFile(new URL('../dist/workflow-bundle.js', import.meta.url), code);
// Workers of another version of the SDK make a bundle of their own.
const record = `${JSON.stringify({ sdk: sdkVersion() })}\n`;
await writeFile(new URL('../dist/workflow-bundle.json', import.meta.url), record);
