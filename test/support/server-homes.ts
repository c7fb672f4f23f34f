import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client, Connection, type WorkflowClient } from '@temporalio/client';
import { afterAll } from 'vitest';
import { z } from 'zod';
import type { ServerHandle } from '../../src/server/server-settings.js';
import { stopServer } from '../../src/server/dev-server.js';
import { childScript } from './child-script.js';

const SCRIPT = new URL('./ensure-server-process.ts', import.meta.url);

const handleSchema: z.ZodType<ServerHandle> = z.object({
  address: z.string(),
  namespace: z.string(),
  uiUrl: z.string().nullable(),
  how: z.enum(['address', 'adopted', 'started']),
  version: z.string().nullable(),
  pid: z.number().nullable(),
  home: z.string(),
});

/** Fresh folders for embedded servers; all servers in them are ended with the test file. */
export function serverHomes() {
  const homes: string[] = [];
  const children: ChildProcess[] = [];
  const connections: Connection[] = [];
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(connections.map((connection) => connection.close()));
    await Promise.all(
      homes.map(async (home) => {
        await stopServer(home);
        await rm(home, { recursive: true, force: true });
      }),
    );
  });
  return {
    freshHome: async (): Promise<string> => {
      const home = await mkdtemp(join(tmpdir(), 'perdure-home-'));
      homes.push(home);
      return home;
    },
    /** Starts a process group that calls `ensureServer`, and waits for its handle. */
    command: async (home: string): Promise<{ child: ChildProcess; handle: ServerHandle }> => {
      const child = spawn(process.execPath, [...childScript(SCRIPT), home], {
        stdio: ['ignore', 'pipe', 'inherit'],
        detached: true,
      });
      children.push(child);
      for await (const line of createInterface({ input: child.stdout })) {
        return { child, handle: handleSchema.parse(JSON.parse(line)) };
      }
      throw new Error(`the command ended with ${child.exitCode} and without a server`);
    },
    client: async (
      address: string,
      namespace = 'default',
    ): Promise<{ connection: Connection; workflow: WorkflowClient }> => {
      const connection = await Connection.connect({ address });
      connections.push(connection);
      return { connection, workflow: new Client({ connection, namespace }).workflow };
    },
  };
}
