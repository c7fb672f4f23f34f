import { relative } from 'node:path';
import { defineConfig, type Config } from '../../config.js';
import type { CliContext } from '../context.js';
import { configFile } from '../input/load-config.js';
import { formatCount } from '../format/format.js';
import type { Finding } from './finding.js';

export interface Configuration {
  readonly finding: Finding;
  /** Empty if the configuration cannot be loaded, so that the other checks can run. */
  readonly config: Config;
}

/** Checks which configuration is in use, and whether it can be loaded. */
export async function readConfiguration(context: CliContext): Promise<Configuration> {
  const name = 'configuration';
  try {
    const config = await context.config();
    const file = configFile({
      file: context.options.config,
      folder: process.cwd(),
      env: context.env,
    });
    const from = file === null ? 'built in (no perdure.config.ts here)' : relative('.', file);
    const agents = config.agents.map((agent) => agent.name);
    const text = `${from}: ${formatCount(agents.length, 'agent')}${agents.length > 0 ? `, ${agents.join(', ')}` : ''}`;
    return { config, finding: { name, level: 'ok', text, data: { file, agents } } };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const fix = 'fix the file, or name another one with --config';
    return {
      config: defineConfig({ agents: [] }),
      finding: {
        name,
        level: 'problem',
        text,
        fix,
        data: { file: context.options.config ?? null },
      },
    };
  }
}
