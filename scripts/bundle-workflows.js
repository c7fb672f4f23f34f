// The last part of the build: bundles the workflow code into one file, so that a worker starts
// quickly.
import { writeFile } from 'node:fs/promises';
import { sdkVersion } from '../dist/temporal/sdk.js';
import { bundleWorkflows } from '../dist/worker/bundle.js';

const { code } = await bundleWorkflows();
await writeFile(new URL('../dist/workflow-bundle.js', import.meta.url), code);
// Workers with another version of the SDK build their own bundle.
const record = `${JSON.stringify({ sdk: sdkVersion() })}\n`;
await writeFile(new URL('../dist/workflow-bundle.json', import.meta.url), record);
