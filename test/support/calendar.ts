import { z } from 'zod';
import {
  planAndExecute,
  type PlanAndExecute,
  type PlanAndExecuteOptions,
} from '../../src/graphs/plan-and-execute.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Desk } from './requests.js';

/** Calendar tools that log their actions with the desk, and an assistant that plans with them. */
export function createCalendar(desk: () => Pick<Desk, 'did'>) {
  const addEvent = defineTool({
    name: 'add_event',
    description: 'Adds an event.',
    input: z.object({ title: z.string(), room: z.string().optional() }),
    effect: 'keyed',
    describe: ({ title }) => `add "${title}"`,
    execute: async ({ title, room }) => {
      desk().did(`add ${title}${room === undefined ? '' : ` in ${room}`}`);
      if (title === 'full') return { success: false, error: 'the day is full' };
      return { data: { id: `e-${title}`, room: 'blue' } };
    },
  });
  const deleteEvent = defineTool({
    name: 'delete_event',
    description: 'Deletes an event.',
    input: z.object({ id: z.string() }),
    effect: 'keyed',
    describe: ({ id }) => `delete event ${id}`,
    execute: async ({ id }) => {
      desk().did(`delete ${id}`);
      return { deleted: id };
    },
  });
  const listEvents = defineTool({
    name: 'list_events',
    description: 'Lists events.',
    input: z.object({}),
    effect: 'read',
    execute: async () => {
      desk().did('list');
      return [{ id: 'e1' }];
    },
  });

  function assistant(options: Partial<PlanAndExecuteOptions> = {}): PlanAndExecute {
    return planAndExecute({
      name: 'assistant',
      instructions: 'You keep a calendar.',
      model: 'script',
      tools: [addEvent, deleteEvent, listEvents],
      rules: [{ tool: 'delete_*', then: 'ask' }],
      ...options,
    });
  }

  return { addEvent, assistant };
}
