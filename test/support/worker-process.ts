// A worker as a process of its own, so that SIGKILL is real. Told by environment, tells `ready`.
import { NativeConnection, Worker } from '@temporalio/worker';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import type { OnLimit } from '../../src/core/definition/definition.js';
import { installRuntime } from '../../src/worker/runtime.js';
import { createWorker } from '../../src/worker.js';
import { blockingAgents } from './blocking-agents.js';
import { contractAgent } from './contract-agent.js';
import { crashAgent } from './crash-agent.js';
import { retrievingAgent } from './retrieving-agent.js';
import { stdioFixture } from './mcp-agent.js';

installRuntime('ERROR');
const { env } = process;
const address = env['ADDRESS'] ?? '';
const taskQueue = env['QUEUE'] ?? '';
const workflowBundle = { codePath: env['BUNDLE'] ?? '' };

/** Runs workflow code and no activity: whatever a run does is then done by another process. */
async function workflowsOnly(): Promise<void> {
  const connection = await NativeConnection.connect({ address });
  const loadAgent = (): Promise<never> => Promise.reject(new Error('no agent is here'));
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowBundle,
    activities: { loadAgent },
    enableNonLocalActivities: false,
  });
  process.send?.('ready');
  await worker.run();
}

async function whole(): Promise<void> {
  const steps = Number(env['STEPS'] ?? 0);
  const window = Number(env['WINDOW'] ?? 0);
  const agent = crashAgent(env['LEDGER'] ?? '', {
    ...(steps > 0 && { limits: { steps, toolCalls: null } }),
    ...(env['ON_LIMIT'] && { onLimit: env['ON_LIMIT'] as OnLimit }),
  });
  const worker = await createWorker({
    config: defineConfig({
      agents: [
        agent,
        contractAgent(),
        retrievingAgent(env['LEDGER'] ?? ''),
        ...blockingAgents(env['CHECKS']),
        ...mcpAgents(),
      ],
      ...(window > 0 && { models: { stub: { window } } }),
    }),
    address,
    taskQueue,
    workflowBundle,
    env,
    workflows: env['ROLE'] !== 'activities',
    // These workers are killed: nobody waits ten seconds until that is noticed.
    heartbeatMs: Number(env['HEARTBEAT_MS'] ?? 3_000),
    ...(env['LIVE'] && { live: {} }),
  });
  process.send?.('ready');
  await worker.stopped;
}

/** Where there are files of a fixture server: an agent that has it for its tools. */
function mcpAgents(): readonly Agent[] {
  const { MCP_TOOLS: tools, MCP_LEDGER: ledger } = env;
  if (tools === undefined || ledger === undefined) return [];
  const mcp = [stdioFixture({ tools, ledger }, { effects: { look: 'read' } })];
  return [defineAgent({ name: 'mcp', instructions: 'x', model: 'stub', mcp })];
}

await (env['ROLE'] === 'workflows' ? workflowsOnly() : whole());
