// A loop by hand in a workflow of DBOS: each model call and each call of the tool is a step in PostgreSQL.
import { DBOS } from '@dbos-inc/dbos-sdk';
import OpenAI from 'openai';
import { INSTRUCTIONS, TOOL } from '../settings.js';
import { serve, work } from './process.js';

const { DATABASE_URL: systemDatabaseUrl, OPENAI_BASE_URL: baseURL } = process.env;
const openai = new OpenAI({ baseURL, apiKey: 'none' });
const { name, description, parameters } = TOOL;
const tools = [{ type: 'function', function: { name, description, parameters } }];

const loop = DBOS.registerWorkflow(
  async (message) => {
    const messages = [
      { role: 'system', content: INSTRUCTIONS },
      { role: 'user', content: message },
    ];
    for (;;) {
      const reply = await DBOS.runStep(() => ask(messages), { name: 'model' });
      messages.push(reply);
      for (const call of reply.tool_calls ?? []) {
        const input = JSON.parse(call.function.arguments);
        const content = await DBOS.runStep(() => work(input), { name: 'tool' });
        messages.push({ role: 'tool', tool_call_id: call.id, content });
      }
      if (reply.tool_calls === undefined) return reply.content;
    }
  },
  { name: 'loop' },
);

async function ask(messages) {
  const { choices } = await openai.chat.completions.create({ model: 'stub', messages, tools });
  const { role, content, tool_calls } = choices[0].message;
  return { role, content, ...(tool_calls?.length && { tool_calls }) };
}

DBOS.setConfig({ name: 'bench', systemDatabaseUrl, logLevel: 'error' });
// Runs that a process has left behind begin again here.
await DBOS.launch();
serve({
  run: async (id, message) => {
    const handle = await DBOS.startWorkflow(loop, { workflowID: id })(message);
    await handle.getResult();
  },
  recover: (id) => DBOS.retrieveWorkflow(id).getResult(),
});
