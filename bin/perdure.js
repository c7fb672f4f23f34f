#!/usr/bin/env node
// Runs the built program, or the sources in a checkout that was not built. Tests set
// PERDURE_FROM=sources, so they never run an outdated build.
import { existsSync } from 'node:fs';

const built = new URL('../dist/cli/main.js', import.meta.url);
const sources = new URL('../src/cli/main.ts', import.meta.url);
const useBuilt = process.env.PERDURE_FROM !== 'sources' && existsSync(built);
if (!useBuilt) await import('tsx/esm');
const { start } = await import(useBuilt ? built : sources);
await start();
