import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { childScript, NO_THREAD } from '../support/child-script.js';
import { freePort } from '../support/free-port.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
});
afterAll(async () => await rig.close());

/** Returns the metrics of the dashboard and the alerts that a worker writes whatever happens. */
async function metricsShown(): Promise<readonly string[]> {
  const files = ['grafana/perdure.json', 'prometheus/alerts.yml'];
  const texts = await Promise.all(
    files.map((file) => readFile(new URL(`../../docker/${file}`, import.meta.url), 'utf8')),
  );
  const names = texts.join('\n').match(/\b(?:perdure|gen_ai|temporal)_[a-z_]+/g) ?? [];
  const labels = /^gen_ai_(?:request_model|provider_name|token_type|agent_name|operation_name)$/;
  // A worker writes it at the first failure.
  const later = ['temporal_workflow_task_execution_failed'];
  return [...new Set(names)].filter((name) => !labels.test(name) && !later.includes(name));
}

test('a worker with its own runtime exposes metrics, and logs with pino', async () => {
  const queue = `observed-${randomUUID()}`;
  const address = `127.0.0.1:${await freePort()}`;
  const script = childScript(new URL('../support/observed-worker.ts', import.meta.url));
  const child = spawn(process.execPath, script, {
    env: {
      ...process.env,
      ...NO_THREAD,
      ADDRESS: inject('temporalAddress'),
      QUEUE: queue,
      METRICS: address,
      MY_KEY: 'canary-of-the-metrics',
      PERDURE_HOME: rig.home,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  const reader = createInterface(child.stdout);
  const ready = new Promise<void>((resolve) => {
    reader.on('line', (line) => {
      if (line === 'ready') resolve();
      else lines.push(line);
    });
  });
  await ready;
  for (const agent of ['scout', 'thinker', 'lead']) {
    const handle = await rig.client.workflow.start('agent', {
      taskQueue: queue,
      workflowId: `${queue}-${agent}`,
      args: [{ agent, message: 'go', tenant: 'acme' }],
      priority: { fairnessKey: 'acme' },
    });
    expect(await handle.result()).toMatchObject({ answer: 'a mountain' });
  }
  const text = await (await fetch(`http://${address}/metrics`)).text();
  const value = (name: string, ...labels: readonly string[]): number => {
    const found = text
      .split('\n')
      .filter((line) => line.includes(`${name}{`) && labels.every((label) => line.includes(label)));
    return Number(found[0]?.split(' ').at(-1));
  };
  expect(value('perdure_model_calls', 'agent="scout"', 'model="m"', 'outcome="stop"')).toBe(1);
  expect(value('perdure_tokens', 'agent="scout"', 'type="input"')).toBe(200);
  expect(value('perdure_tokens', 'agent="scout"', 'type="output"')).toBe(40);
  // A decision is not a model call; the two that it makes are.
  expect(value('perdure_model_calls', 'agent="thinker"')).toBe(2);
  expect(value('perdure_tokens', 'agent="thinker"', 'type="input"')).toBe(200);
  expect(value('perdure_cost_microdollars', 'agent="scout"')).toBe(240);
  expect(value('perdure_tool_calls', 'tool="look"', 'outcome="ok"')).toBe(1);
  expect(value('perdure_turns', 'agent="scout"', 'status="completed"', 'reason="answer"')).toBe(1);
  // A called agent has the tenant of its caller.
  expect(value('perdure_turns', 'agent="aide"', 'tenant="acme"')).toBe(1);
  const usage = ['gen_ai_agent_name="scout"', 'gen_ai_provider_name="custom"', 'tenant="acme"'];
  expect(value('gen_ai_client_token_usage_count', ...usage, 'gen_ai_token_type="input"')).toBe(2);
  expect(value('gen_ai_client_token_usage_sum', ...usage, 'gen_ai_token_type="output"')).toBe(40);
  expect(value('gen_ai_client_operation_duration_count', ...usage, 'error_type=""')).toBe(2);
  expect((await metricsShown()).filter((name) => !text.includes(`${name}{`))).toEqual([]);
  child.kill('SIGTERM');
  await once(child, 'exit');
  const logs = lines.map((line) => JSON.parse(line) as { msg?: string; level?: number });
  expect(logs).toContainEqual(
    expect.objectContaining({ level: 30, msg: expect.stringMatching(/^looked with (?!canary)/) }),
  );
  expect(lines.join('\n') + text).not.toContain('canary');
});
