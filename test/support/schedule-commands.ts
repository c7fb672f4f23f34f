import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, inject } from 'vitest';
import { createProgram } from '../../src/cli/program.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { clientOf } from './clerk.js';
import { type CommandOutput, runInProcess } from './in-process.js';
import { type Rig, createRig } from './rig.js';

/** A rig with its client, and a configuration with one agent, `files`. */
interface ScheduleDesk {
  readonly rig: Rig;
  readonly client: PerdureClient;
  readonly ofFiles: string;
}

/**
 * Prepares a rig for commands about schedules, and calls `ready` with it before the tests of a file. The
 * schedules in `created` are deleted after each test.
 */
export function scheduleCommands(ready: (desk: ScheduleDesk) => void) {
  const created: string[] = [];
  let desk: ScheduleDesk | null = null;
  beforeAll(async () => {
    const rig = await createRig();
    const ofFiles = join(rig.home, 'files.config.mjs');
    const agent = "defineAgent({ name: 'files', instructions: 'x', model: 'demo' })";
    await writeFile(
      ofFiles,
      `import { defineAgent, defineConfig } from 'perdure';\nexport default defineConfig({ agents: [${agent}] });\n`,
    );
    desk = { rig, client: await clientOf(rig), ofFiles };
    ready(desk);
  });
  afterEach(async () => {
    for (const id of created.splice(0)) {
      await desk?.client.schedule.delete(id).catch(() => undefined);
    }
  });
  afterAll(async () => {
    await desk?.client.disconnect();
    await desk?.rig.close();
  });

  /** Parses a command line as the program does, and runs its command in this process. */
  const perdureWith = async (
    config: string | false,
    ...args: readonly string[]
  ): Promise<CommandOutput> => {
    if (desk === null) throw new Error('the rig is not ready');
    const { home, taskQueue } = desk.rig;
    const place = { address: inject('temporalAddress'), home, taskQueue, config };
    let output: CommandOutput | undefined;
    const program = createProgram(async (command, entry, options) => {
      const { json } = entry.optsWithGlobals<{ json?: boolean }>();
      output = await runInProcess(command, options, { ...place, ...(json && { json }) });
    });
    await program.parseAsync([...args], { from: 'user' });
    if (output === undefined) throw new Error('no command ran');
    return output;
  };
  const perdure = async (...args: readonly string[]): Promise<CommandOutput> =>
    await perdureWith(false, ...args);
  return { created, perdure, perdureWith };
}
