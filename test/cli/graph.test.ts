import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { graph, type GraphCommandOptions } from '../../src/cli/commands/graph.js';
import { UsageError } from '../../src/cli/context.js';
import { createContext } from '../../src/cli/main.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { graphQuery, statusQuery } from '../../src/workflows/messages/definitions.js';
import { mail } from '../core/graph/fixture.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

const CONFIG = `import { defineAgent, defineConfig, defineTool } from 'perdure';
import { mcpServer } from 'perdure/tools';
import { z } from 'zod';
const look = defineTool({
  name: 'look_up',
  description: 'looks',
  input: z.object({}),
  effect: 'read',
  execute: () => 'seen',
});
const below = defineAgent({ name: 'below', instructions: 'x', description: 'helps', model: 'm' });
const desk = defineAgent({ name: 'desk', instructions: 'x', model: 'm', tools: [look], agents: [below] });
const shop = mcpServer({ name: 'shop', transport: 'http', url: 'http://127.0.0.1:1/mcp' });
const far = defineAgent({ name: 'far', instructions: 'x', mcp: [shop] });
const definition = ${JSON.stringify(mail)};
const mail = { ...below, name: 'mail', graph: { definition, functions: new Map() } };
export default defineConfig({ agents: [desk, mail, far] });
`;

let folder: string;
let config: string;
let rig: Rig;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perdure-graph-'));
  config = join(folder, 'perdure.config.ts');
  await writeFile(config, CONFIG);
  rig = await createRig();
});
afterAll(async () => {
  await rig.close();
  await rm(folder, { recursive: true, force: true });
});

const draw = async (options: GraphCommandOptions, json = false): Promise<CommandOutput> =>
  await runInProcess(graph, options, {
    config,
    json,
    address: inject('temporalAddress'),
    home: rig.home,
    taskQueue: rig.taskQueue,
  });

async function refusal(options: GraphCommandOptions): Promise<string> {
  const error: unknown = await draw(options).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UsageError);
  return (error as Error).message;
}

describe('graph NAME', () => {
  test("prints the built-in loop of an agent, without the engine's own tools", async () => {
    const { code, stdout, stderr } = await draw({ name: 'desk' });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n').slice(0, 6)).toEqual([
      'flowchart TD',
      '  start(["start"])',
      '  n0{{"decide<br/>model m"}}',
      '  n1[["below<br/>agent below"]]',
      '  n2["look_up<br/>tool"]',
      '  closing{{"closing answer<br/>without tools"}}',
    ]);
  });

  test('finds an agent that another one calls', async () => {
    expect((await draw({ name: 'below' })).stdout).toContain('n0 -->|"text"| finish');
  });

  test('prints a graph, and with JSON also its definition and its drawing', async () => {
    const { stdout } = await draw({ name: 'mail' });
    expect(stdout).toContain('  n1{"sort<br/>choose"}');
    const printed = await draw({ name: 'mail' }, true);
    expect(printed.stdout.split('\n')).toHaveLength(1);
    expect(JSON.parse(printed.stdout)).toEqual({
      agent: 'mail',
      run: null,
      plan: null,
      definition: mail,
      state: null,
      drawing: expect.objectContaining({ nodes: expect.any(Array), edges: expect.any(Array) }),
      mermaid: stdout,
    });
    const loop = JSON.parse((await draw({ name: 'desk' }, true)).stdout);
    expect(loop).toMatchObject({ agent: 'desk', definition: null });
  });

  test('says that the tools of MCP servers are unknown before a run', async () => {
    const { stderr, stdout } = await draw({ name: 'far' });
    expect(stderr).toContain('tools of MCP servers are not shown');
    expect(stdout).toContain('n0{{"decide<br/>model"}}');
  });

  test('refuses an unknown name, a name with --run, and neither of them', async () => {
    expect(await refusal({ name: 'dsk' })).toMatch(
      /^name: expected an agent or a graph of the configuration, got "dsk" \(nearest: desk\); correct the name$/,
    );
    expect(await refusal({ name: 'elsewhere' })).toMatch(
      /got "elsewhere" \(it has: below, desk, far, .*\); correct the name$/,
    );
    expect(await refusal({ name: 'constructor' })).toContain('got "constructor"');
    expect(await refusal({ name: 'desk', run: 'x' })).toContain('--run: expected no NAME');
    expect(await refusal({})).toContain('name: expected the name of an agent or a graph, got none');
  });
});

describe('graph --run ID', () => {
  test('is named to a person who gives the id of a run as a name', async () => {
    const desk = defineAgent({ name: 'desk', instructions: 'x', model: 'm' });
    await rig.worker([desk], { models: { m: scriptedModel([replyText('done')]) } });
    const handle = await rig.start({ agent: 'desk', message: 'x' });
    await rig.end(handle);
    await rig.stopWorkers();
    const id = handle.workflowId;
    expect(await refusal({ name: id })).toMatch(
      new RegExp(`; it is a run: draw its graph with: .* graph .*--run=${id}`),
    );
    // A server that answers knows that there is no such run.
    expect(await refusal({ name: 'desk-20261201-8f3a2c' })).toMatch(/; correct the name$/);
    const silent = createContext({ config }, { PERDURE_HOME: join(folder, 'silent') });
    await expect(graph.run(silent, { name: 'desk-20261201-8f3a2c' })).rejects.toThrow(
      /; correct the name, or, if it is a run, draw its graph with: .*--run=desk-20261201-8f3a2c/,
    );
    await expect(graph.run(silent, { name: 'elsewhere' })).rejects.toThrow(/; correct the name$/);
    await silent.close();
  });

  test('prints the built-in loop for a run whose agent has no graph, without a worker', async () => {
    const look = defineTool({
      name: 'look',
      description: 'looks',
      input: z.object({}),
      effect: 'read',
      execute: () => 'seen',
    });
    const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm', tools: [look] });
    const script = scriptedModel([replyCall('look', {}), replyText('done')]);
    await rig.worker([agent], { models: { m: script } });
    const { handle } = await rig.run({ agent: 'a', message: 'go' });
    const run = handle.workflowId;
    expect(await handle.query(graphQuery)).toBe(null);
    // The worker has begun this run, and looks for its agent.
    const lost = await rig.start({ agent: 'nowhere', message: 'go' });
    await lost.query(statusQuery);
    await expect(draw({ run: lost.workflowId })).rejects.toThrow('has no graph yet');
    await lost.terminate();
    await rig.stopWorkers();
    const { code, stdout } = await draw({ run });
    expect(code).toBe(0);
    expect(stdout).toMatch(/n\d+\["look<br\/>tool"\]/);
    const json = JSON.parse((await draw({ run }, true)).stdout);
    expect(json).toMatchObject({ agent: 'a', run, definition: null, state: null, mermaid: stdout });
  });

  test('reports that no worker has loaded the agent, or that the run does not exist', async () => {
    const handle = await rig.client.workflow.start('agent', {
      // A queue that no worker has ever polled.
      taskQueue: `none-${randomUUID()}`,
      workflowId: `graph-${randomUUID()}`,
      args: [{ agent: 'a', message: 'go' }],
    });
    const run = handle.workflowId;
    const options = { config, address: inject('temporalAddress') };
    const context = createContext(options, { PERDURE_HOME: rig.home });
    await expect(graph.run(context, { run })).rejects.toThrow(
      `run ${run} has no graph yet: no worker has loaded its agent`,
    );
    await context.close();
    await expect(draw({ run: randomUUID() })).rejects.toThrow('list runs with:');
    await handle.terminate();
  });
});
