// An agent that ends by a call, not by words: `file_incident` closes the turn, and what it returns is
// the run's output. Text in place of a call is a failure that says so.
//   perdure run incident "The shop is slow since noon" --config examples/incident-agent/perdure.config.ts
import { defineAgent, defineConfig, defineTool, ToolError } from 'perdure';
import { z } from 'zod';

const logs: Readonly<Record<string, string>> = {
  shop: '12:01 WARN query took 9,100 ms\n12:02 WARN pool exhausted, 40 requests wait',
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
    throw new ToolError(`no service "${service}"; there are ${Object.keys(logs).join(', ')}`);
  },
});

const fileIncident = defineTool({
  name: 'file_incident',
  description: 'Files the incident when its cause is known. This ends the work.',
  input: z.object({ service: z.string(), cause: z.string(), severity: z.enum(['low', 'high']) }),
  output: z.object({ incident: z.string(), pagedOnCall: z.boolean() }),
  // The tracker takes our key as the incident's number: filed again, it is the same incident.
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
