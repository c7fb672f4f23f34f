// An agent that ends with a call instead of a text: `file_incident` ends the turn, and its result is the
// run's output. A text instead of a call fails the turn.
//   perdure run incident "The shop has been slow since noon" --config examples/incident-agent/perdure.config.ts
import { defineAgent, defineConfig, defineTool, ToolError } from 'perdure';
import { z } from 'zod';

const logs: Readonly<Record<string, string>> = {
  shop: '12:01 WARN query took 9,100 ms\n12:02 WARN pool exhausted, 40 requests waiting',
  bank: '12:00 INFO all quiet',
};

const readLog = defineTool({
  name: 'read_log',
  description: 'The newest lines of a service’s log.',
  input: z.object({ service: z.string() }),
  effect: 'read',
  async execute({ service }) {
    const lines = logs[service];
    if (lines !== undefined) return lines;
    throw new ToolError(
      `service: expected one of ${Object.keys(logs).join(', ')}, got "${service}"`,
    );
  },
});

const fileIncident = defineTool({
  name: 'file_incident',
  description: 'Files the incident once its cause is known. This ends the work.',
  input: z.object({ service: z.string(), cause: z.string(), severity: z.enum(['low', 'high']) }),
  output: z.object({ incident: z.string(), pagedOnCall: z.boolean() }),
  // The tracker uses the key as the incident's number, so filing twice makes one incident.
  effect: 'keyed',
  ends: true,
  async execute({ severity }, { idempotencyKey }) {
    return { incident: `INC-${idempotencyKey.slice(0, 8)}`, pagedOnCall: severity === 'high' };
  },
});

export default defineConfig({
  agents: [
    defineAgent({
      name: 'incident',
      instructions: 'Find the cause in the logs, then file the incident.',
      tools: [readLog, fileIncident],
      toolChoice: 'required',
      onPlainText: 'fail',
      limits: { steps: 8 },
    }),
  ],
});
