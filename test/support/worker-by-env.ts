import { existsSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { NativeConnection, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Agent } from '../../src/agents/agent.js';
import { z } from 'zod';
import { type Config, defineConfig } from '../../src/config.js';
import { withFaults } from '../../src/memory/faults.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createWorker, type RunningWorker } from '../../src/worker/create-worker.js';
import type { ToolContext } from '../../src/tools/tool.js';
import type { WorkerOptions } from '../../src/worker/options.js';
import { allowancesConfig } from './allowances-config.js';
import { blockingAgents } from './blocking-agents.js';
import { contractAgent } from './contract-agent.js';
import { crashAgent } from './crash-agent.js';
import { decidingAgent, generatingGraph } from './deciding-agent.js';
import { faultyAgent, faultyModel } from './faulty-agent.js';
import { ledgerGraphs } from './ledger-graph.js';
import { stdioFixture } from './mcp-agent.js';
import { retrievingAgent } from './retrieving-agent.js';

/** Creates a worker that runs workflow code and no activity: another worker does whatever a run does. */
export async function workflowsOnly(
  env: Readonly<Record<string, string | undefined>>,
  workflowBundle: WorkflowBundleOption,
): Promise<Worker> {
  return await Worker.create({
    connection: await NativeConnection.connect({ address: env['ADDRESS'] ?? '' }),
    taskQueue: env['QUEUE'] ?? '',
    workflowBundle,
    enableNonLocalActivities: false,
  });
}

/** Creates the worker of the tests that kill workers, as its environment describes it. */
export async function workerByEnv(
  env: Readonly<Record<string, string | undefined>>,
  rest: Partial<Pick<WorkerOptions, 'workflowBundle' | 'shutdownGrace'>>,
): Promise<RunningWorker> {
  const steps = Number(env['STEPS'] ?? 0);
  const window = Number(env['WINDOW'] ?? 0);
  const agent = crashAgent(env['LEDGER'] ?? '', {
    ...(steps > 0 && { limits: { steps, toolCalls: null } }),
  });
  const capped = (['answer', 'compose', 'fail'] as const).map((onLimit) =>
    crashAgent(env['LEDGER'] ?? '', { name: `capped-${onLimit}`, limits: { steps: 2 }, onLimit }),
  );
  const { FAULTS: faults, LEDGER: ledger = '', NOTES: file = '', ALLOWANCES: allowances } = env;
  const faulty = (): Config =>
    withFaults(
      defineConfig({ agents: [faultyAgent(ledger)], models: { m: faultyModel } }),
      JSON.parse(faults ?? ''),
      { file },
    );
  const own = (): Config =>
    defineConfig({
      agents: [
        agent,
        ...capped,
        contractAgent(),
        decidingAgent(),
        generatingGraph(),
        retrievingAgent(env['LEDGER'] ?? ''),
        ...ledgerGraphs(env['LEDGER'] ?? ''),
        ...blockingAgents(env['CHECKS']),
        ...mcpAgents(env),
        askingAgent(),
        fatalAgent(env['LEDGER'] ?? '', env['FATAL']),
        freezingAgent(env['FREEZE']),
      ],
      ...(window > 0 && { models: { stub: { window } } }),
    });
  const shared = allowances === undefined ? null : allowancesConfig(allowances);
  return await createWorker({
    config: shared ?? (faults === undefined ? own() : faulty()),
    address: env['ADDRESS'] ?? '',
    taskQueue: env['QUEUE'] ?? '',
    env,
    workflows: env['ROLE'] !== 'activities',
    // These workers are killed, and tests should not wait ten seconds until that is detected.
    heartbeat: Number(env['HEARTBEAT_MS'] ?? 3_000),
    ...(env['SEGMENT_STEPS'] && {
      segment: { steps: Number(env['SEGMENT_STEPS']), bytes: 1e6 },
    }),
    ...(env['LIVE'] && { live: {} }),
    ...rest,
  });
}

/** An agent that asks about each of its calls. */
function askingAgent(): Agent {
  const look = defineTool({
    name: 'look',
    description: 'looks',
    input: z.object({ part: z.number() }),
    effect: 'read',
    execute: async ({ part }) => `seen ${part}`,
  });
  const rules = [{ tool: 'look', then: 'ask' }] as const;
  return defineAgent({ name: 'asking', instructions: 'x', model: 'stub', tools: [look], rules });
}

/**
 * An agent with inline reads, of which `fatal` kills its process, once: it then creates the file
 * `once`.
 */
function fatalAgent(ledgerUrl: string, once: string | undefined): Agent {
  const read = async (tool: string, { run, call }: ToolContext): Promise<string> => {
    const body = JSON.stringify({ tool, key: call.id, run: run.id, input: call.attempt });
    await fetch(ledgerUrl, { method: 'POST', body });
    return `${tool} was read`;
  };
  const tools = ['peek', 'fatal'].map((name) =>
    defineTool({
      name,
      description: 'reads',
      input: z.object({}),
      effect: 'read',
      inline: true,
      async execute(_, context) {
        const text = await read(name, context);
        const isNew =
          name === 'fatal' &&
          once !== undefined &&
          (await writeFile(once, '', { flag: 'wx' }).then(
            () => true,
            () => false,
          ));
        if (isNew) process.kill(process.pid, 'SIGKILL');
        return text;
      },
    }),
  );
  return defineAgent({ name: 'fatal', instructions: 'x', model: 'stub', tools });
}

/**
 * An agent with an inline read that freezes its process at once, the first time: it then creates the
 * file `once`.
 */
function freezingAgent(once: string | undefined): Agent {
  const freeze = defineTool({
    name: 'freeze',
    description: 'freezes its process',
    input: z.object({ n: z.number() }),
    effect: 'read',
    inline: true,
    execute({ n }) {
      if (once !== undefined && !existsSync(once)) {
        writeFileSync(once, '');
        process.kill(process.pid, 'SIGSTOP');
      }
      return `thawed ${n}`;
    },
  });
  return defineAgent({ name: 'freezing', instructions: 'x', model: 'stub', tools: [freeze] });
}

/** If there are files of a fixture server, adds an agent that has it as a tool source. */
function mcpAgents({
  MCP_TOOLS: tools,
  MCP_LEDGER: ledger,
}: Readonly<Record<string, string | undefined>>): readonly Agent[] {
  if (tools === undefined || ledger === undefined) return [];
  const mcp = [stdioFixture({ tools, ledger }, { effects: { look: 'read' } })];
  return [defineAgent({ name: 'mcp', instructions: 'x', model: 'stub', mcp })];
}
