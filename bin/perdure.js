#!/usr/bin/env node
// The built program where there is one, else the sources: a checkout that was not built, and tests,
// which ask for the sources so that no old build is tested.
import { existsSync } from 'node:fs';

const built = new URL('../dist/cli/start.js', import.meta.url);
const sources = new URL('../src/cli/start.ts', import.meta.url);
const useBuilt = process.env.PERDURE_FROM !== 'sources' && existsSync(built);
if (!useBuilt) await import('tsx/esm');
const { start } = await import(useBuilt ? built : sources);
await start();
