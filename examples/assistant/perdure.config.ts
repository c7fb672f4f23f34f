// An assistant for calendar, tasks, and mail: it plans, asks before it deletes, and reports.
//   perdure run assistant "Clear my Tuesday" --open --config examples/assistant/perdure.config.ts
import { defineConfig } from 'perdure';
import { planAndExecute } from 'perdure/graphs';
import { tools } from './tools.js';

const MOST = 5_000;

const assistant = planAndExecute({
  name: 'assistant',
  description: 'Manages calendar, tasks, and mail.',
  instructions:
    'You manage the calendar, the tasks, and the mail of the user. Find the ids that you need by listing; ' +
    'never make one up.',
  tools,
  rules: [{ tool: 'delete_*', then: 'ask' }],
  limits: { steps: 30 },
}).with({
  before: {
    plan: ({ message }) => {
      if (message.trim() === '') return { answer: 'What can I do for you?' };
      if (message.length <= MOST) return {};
      return { answer: `Please keep it under ${MOST} characters.` };
    },
  },
});

export default defineConfig({ agents: [assistant] });
