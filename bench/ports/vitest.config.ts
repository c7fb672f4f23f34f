import { defineConfig } from 'vitest/config';
import base from '../../vitest.live.config.js';

/** `npm run ports`: both sides of the pages for those who come from another library. */
export default defineConfig({ test: { ...base.test, include: ['bench/ports/*.ports.ts'] } });
