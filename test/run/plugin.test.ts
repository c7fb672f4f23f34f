import { randomBytes } from 'node:crypto';
import { mkdtemp, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  bundleWorkflowCode,
  DefaultLogger,
  NativeConnection,
  Worker,
  type BundleOptions,
  type BundlerPlugin,
} from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { encryptionCodec } from '../../src/encryption/payload-codec.js';
import { isPolledHere } from '../../src/live/hub.js';
import { perdurePlugin } from '../../src/worker/plugin.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { createGate } from '../../src/testing/play.js';
import { createRig, type Rig } from '../support/rig.js';

const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm' });
const models = { m: scriptedModel([replyText('hi')]) };
let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
});
afterAll(async () => await rig.close());

describe('the options of a worker', () => {
  test('get the activities in addition to their own, and settings that they lack', async () => {
    const theirs = async (): Promise<string> => 'theirs';
    const options = await perdurePlugin({ agents: [agent], models }).configureWorker?.({
      taskQueue: 'q',
      activities: { theirs },
    });
    expect(Object.keys(options?.activities ?? {})).toEqual(
      expect.arrayContaining(['theirs', 'loadAgent', 'callModel', 'runTool', 'runFunction']),
    );
    expect(options).toMatchObject({
      workflowTaskPollerBehavior: { type: 'autoscaling' },
      activityTaskPollerBehavior: { type: 'autoscaling' },
      stickyQueueScheduleToStartTimeout: 5_000,
      shutdownGraceTime: 5_000,
    });
  });

  test('keep the settings that they have', async () => {
    const own = {
      taskQueue: 'q',
      workflowTaskPollerBehavior: { type: 'simple-maximum', maximum: 3 },
      maxConcurrentActivityTaskPolls: 2,
      stickyQueueScheduleToStartTimeout: '1 s',
      shutdownGraceTime: '1 m',
    } as const;
    const options = await perdurePlugin({ agents: [agent], models }).configureWorker?.(own);
    expect(options).toMatchObject(own);
    expect(options?.activityTaskPollerBehavior).toBeUndefined();
  });

  test('encrypt with the keys of the plugin, and keep a codec of their own', async () => {
    const encryption = { keys: { k1: randomBytes(32).toString('base64') }, current: 'k1' };
    const plugin = perdurePlugin({ agents: [agent], models, encryption });
    const options = await plugin.configureWorker?.({ taskQueue: 'q' });
    const [codec] = options?.dataConverter?.payloadCodecs ?? [];
    const [payload] = (await codec?.encode([{ data: Buffer.from('secret') }], undefined)) ?? [];
    expect(Buffer.from(payload?.metadata?.['encoding'] ?? []).toString()).toBe('binary/encrypted');

    const own = { payloadCodecs: [encryptionCodec(encryption)] };
    const kept = await perdurePlugin({ agents: [agent], models, encryption }).configureWorker?.({
      taskQueue: 'q',
      dataConverter: own,
    });
    expect(kept?.dataConverter).toBe(own);
    // The texts of failures become payloads, which that codec encrypts.
    expect(kept?.interceptors?.activity).toHaveLength(options?.interceptors?.activity?.length ?? 0);
    expect(() =>
      perdurePlugin({ agents: [agent], models, encryption: { ...encryption, current: 'k2' } }),
    ).toThrow('encryption: current: expected the id of one of the keys');
  });

  test('are refused with an activity of the same name, and with the plugin twice', async () => {
    const plugin = perdurePlugin({ agents: [agent], models });
    const once = await plugin.configureWorker?.({ taskQueue: 'q' });
    await expect(plugin.configureWorker?.(once ?? { taskQueue: 'q' })).rejects.toThrow(
      /^plugin perdure: activities: expected no activity "\w+".* rename yours, or give the plugin only once/,
    );
  });
});

describe('the workflows file of a worker of your own', () => {
  const plugin = perdurePlugin({ agents: [agent], models });
  /** The plugin without perdure's own modules: to bundle them takes two seconds of CPU time. */
  const lightened = (whole: BundlerPlugin): BundlerPlugin => ({
    name: 'light',
    configureBundler(given) {
      const hook = whole.configureBundler?.(given).webpackConfigHook;
      return { ...given, ...(hook && { webpackConfigHook: hook }) };
    },
  });
  const light = lightened(plugin);
  const engine = JSON.stringify(fileURLToPath(new URL('../../src/workflow.ts', import.meta.url)));
  const logger = new DefaultLogger('ERROR', () => undefined);
  const own = 'export async function mine() {}\n';

  interface Bundled {
    readonly name?: string;
    /** The path that the bundler is given, if not the name. */
    readonly shown?: string;
    readonly used?: BundlerPlugin[];
  }

  async function bundle(code: string, { name = 'workflows.ts', shown, used }: Bundled = {}) {
    const folder = await mkdtemp(join(rig.home, 'own-'));
    await writeFile(join(folder, name), code);
    await writeFile(join(folder, 'engine.ts'), 'export const [agent, probe] = [0, 0];\n');
    // The bundler looks for the SDK from there.
    await symlink(join(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'));
    const workflowsPath = join(folder, shown ?? name);
    return await bundleWorkflowCode({ workflowsPath, plugins: used ?? [light], logger });
  }

  test.each([
    ['exports nothing of it', own, 'workflows.ts', 'workflows.ts'],
    ['exports something else of it', "export { probe } from './engine';\n", 'index.ts', ''],
  ])('is refused if it %s', async (_what, code, name, shown) => {
    await expect(bundle(code, { name, shown })).rejects.toThrow(
      /^plugin perdure: .*: expected an export `agent`, got none; add: export \{ agent \} from 'perdure\/workflow';$/,
    );
  });

  test('is refused without `rate` if a model has one, and without `budget` if there are budgets', async () => {
    const rated = perdurePlugin({
      budgets: [{ tenant: 'acme', per: 'day', tokens: 1_000 }],
      agents: [agent],
      models: { m: { baseUrl: 'http://127.0.0.1:1/v1', rate: { requests: 60 } } },
    });
    const used = [lightened(rated)];
    const code = "export { agent } from './engine';\n";
    await expect(bundle(code, { used })).rejects.toThrow(
      "expected an export `rate`, got none; add: export { rate } from 'perdure/workflow';",
    );
    const both = `${code}export async function rate() {}\n`;
    await expect(bundle(both, { used })).rejects.toThrow('add: export { budget } from');
    const all = `${both}export async function budget() {}\n`;
    await expect(bundle(all, { used })).resolves.toHaveProperty('code');
  });

  test.each([
    ['exports all', `${own}export * from './engine';\n`, 'workflows.ts'],
    ['is CommonJS', "exports.agent = require('./engine').agent;\n", 'workflows.cjs'],
  ])('is taken if it %s', async (_what, code, name) => {
    await expect(bundle(code, { name })).resolves.toHaveProperty('code');
  });

  const taking = (code: string) =>
    plugin.configureWorker?.({ taskQueue: 'q', workflowBundle: { code } });

  test('is taken if it names it, and so is its bundle', async () => {
    const { code } = await bundle(`${own}export { agent } from ${engine};\n`, { used: [plugin] });
    await expect(taking(code)).resolves.toHaveProperty('activities');
  });

  test.each([
    ['without `agent`', 'exports.mine = async () => {};'],
    ['with `agent`, but without the plugin', `export { agent } from ${engine};\n`],
  ])('is also required in a bundle, which is refused %s', async (what, source) => {
    const isBundled = what.startsWith('with ');
    const { code } = isBundled ? await bundle(source, { used: [] }) : { code: source };
    await expect(taking(code)).rejects.toThrow(
      "plugin perdure: workflowBundle: expected perdure's workflow code, got none; give bundleWorkflowCode the plugin",
    );
  });
});

describe('the options of a bundler', () => {
  const plugin = perdurePlugin({ agents: [agent], models });
  const bundling = (rest: Partial<BundleOptions> = {}): BundleOptions | undefined =>
    plugin.configureBundler?.({ workflowsPath: 'w', ...rest });

  test('get the payload converter, and modules to preload in addition to their own', () => {
    const options = bundling({ preloadModules: ['theirs'] });
    expect(options?.payloadConverterPath).toMatch(/workflows\/payload-converter\.ts$/);
    expect(options?.preloadModules).toEqual([
      'theirs',
      expect.stringMatching(/workflows\/agent\.ts$/),
    ]);
  });

  test('keep their own payload converter, and print the consequences', () => {
    const warn = vi.fn<(text: string) => void>();
    const nothing = (): void => undefined;
    const logger = {
      log: nothing,
      trace: nothing,
      debug: nothing,
      info: nothing,
      warn,
      error: nothing,
    };
    expect(bundling({ payloadConverterPath: '/own.js', logger })?.payloadConverterPath).toBe(
      '/own.js',
    );
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining('keeps its own payload converter (/own.js)')],
    ]);
  });
});

test('agents that cannot work are refused when the plugin is created', () => {
  expect(() => perdurePlugin({ agents: [agent, agent] })).toThrow(
    'agents: expected different names, got "a" twice; rename one',
  );
  const misspelled = { agent: [agent] } as never;
  expect(() => perdurePlugin(misspelled)).toThrow('agents: missing, expected a value');
});

test('a worker that shuts down does not leave a call waiting for a workflow that no worker runs', async () => {
  const { taskQueue, client } = rig;
  const held = createGate();
  await rig.worker([agent], {
    models: {
      m: {
        async call(_request, { signal }) {
          await held.wait(signal);
          return replyText('never');
        },
      },
    },
  });
  const handle = await rig.start({ agent: 'a', message: 'go' });
  await held.barrier.reached;
  await rig.stopWorkers();
  // Runs no workflows, like any worker now: the query of the next attempt is not answered.
  const connection = await NativeConnection.connect({ address: inject('temporalAddress') });
  const worker = await Worker.create({
    connection,
    taskQueue,
    identity: 'own',
    // Without it, the SDK may end the call first, and the test would prove nothing about ours.
    shutdownGraceTime: 20_000,
    plugins: [perdurePlugin({ agents: [agent], models, env: { PERDURE_HOME: rig.home } })],
  });
  const running = worker.run();
  const pending = async () => {
    const { raw } = await client.workflow.getHandle(handle.workflowId).describe();
    return raw.pendingActivities?.[0];
  };
  await vi.waitFor(
    async () => expect(await pending()).toMatchObject({ lastWorkerIdentity: 'own' }),
    { timeout: 30_000, interval: 50 },
  );
  // So a client of this process does not report that no deltas can reach it.
  const polled = { namespace: 'default', taskQueue };
  expect(isPolledHere(polled)).toBe(true);
  worker.shutdown();
  await running;
  expect(isPolledHere(polled)).toBe(false);
  await connection.close();
  // On a slow machine, the SDK itself ends the call.
  expect((await pending())?.lastFailure?.message).toMatch(/worker is shutting down/i);
});
