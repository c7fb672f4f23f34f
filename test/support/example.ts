import { resolve } from 'node:path';
import { loadConfig } from '../../src/cli/input/load-config.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { createRig, type Rig } from './rig.js';

/** An example from the repository, on a worker whose model is the stub or a real one. */
export interface Example {
  readonly rig: Rig;
  readonly stub: Stub;
  /** Moves the same agents to another worker, which loses the memory of the first. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Starts an example. `live`: the variables of a real model, instead of the stub's. */
export async function startExample(
  name: string,
  live?: Readonly<Record<string, string>>,
  /** Whether the stub refuses scripted replies that no server that enforces schemas would send. */
  { enforces = true }: { readonly enforces?: boolean } = {},
): Promise<Example> {
  const [rig, stub] = [await createRig(), await startStub({ enforces })];
  const { agents, models, rules } = await loadConfig({
    folder: resolve('examples', name),
    env: {},
  });
  const env = {
    PERDURE_HOME: rig.home,
    PERDURE_MODEL: 'stub',
    OPENAI_BASE_URL: stub.baseUrl,
    ...live,
  };
  const restart = async (): Promise<void> => {
    await rig.stopWorkers();
    await rig.worker(agents, {
      ...(rules && { rules }),
      ...(models && { models }),
      env,
    });
  };
  await restart();
  return {
    rig,
    stub,
    restart,
    async close() {
      await rig.close();
      await stub.close();
    },
  };
}
