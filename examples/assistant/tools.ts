// Six tools that work, and eleven more that a real assistant would have.
import { defineTool, type Tool } from 'perdure';
import { z } from 'zod';

const SERVICE = 'http://127.0.0.1:8899';

interface Call {
  readonly method?: 'POST' | 'DELETE';
  readonly body?: object;
  readonly key?: string;
  readonly signal: AbortSignal;
}

async function call(path: string, { method, body, key, signal }: Call): Promise<object> {
  const response = await fetch(`${process.env['ASSISTANT_SERVICE'] ?? SERVICE}/${path}`, {
    ...(method && { method }),
    ...(body && { body: JSON.stringify(body) }),
    ...(key !== undefined && { headers: { 'idempotency-key': key } }),
    signal,
  });
  if (response.status === 404) return { success: false, error: `${path} does not exist` };
  if (!response.ok) throw new Error(`the service answered ${response.status}`);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- our own service
  return (await response.json()) as object;
}

const when = z.iso.datetime({ local: true });
const tasklist = z.string().optional().describe('id of a list; default: the first one');

/** The maximum number of rows in a list. */
const rows = (most: number, usual: number): z.ZodType<number> =>
  z.int().min(1).max(most).default(usual);

const addEvent = defineTool({
  name: 'add_calendar_event',
  description: 'Adds an event to the calendar. Returns it with its id.',
  effect: 'keyed',
  input: z.object({
    title: z.string().describe('what people read in the calendar'),
    start: when.describe('local time, such as 2026-11-24T12:00:00'),
    end: when.optional().describe('default: one hour after the start'),
    description: z.string().default(''),
    attendees: z.array(z.email()).default([]).describe('who is invited'),
    timezone: z.string().default('UTC').describe('IANA name, such as Europe/Rome'),
  }),
  describe: ({ title, start }) => `add "${title}" on ${start}`,
  execute: async ({ title, start }, { idempotencyKey: key, signal }) =>
    await call('events', { method: 'POST', body: { title, start }, key, signal }),
  undo: async (_, event, { idempotencyKey: key, signal }) => {
    const { id } = z.object({ id: z.string() }).parse(event);
    await call(`events/${id}`, { method: 'DELETE', key, signal });
  },
});
const deleteEvent = defineTool({
  name: 'delete_calendar_event',
  description: 'Deletes an event of the calendar.',
  effect: 'keyed',
  input: z.object({ event_id: z.string() }),
  describe: ({ event_id: id }) => `delete event ${id}`,
  execute: async ({ event_id: id }, { idempotencyKey: key, signal }) =>
    await call(`events/${encodeURIComponent(id)}`, { method: 'DELETE', key, signal }),
});
const listEvents = defineTool({
  name: 'list_calendar_events',
  description: 'Lists the events of the calendar, ordered by their start.',
  effect: 'read',
  input: z.object({
    from: when.optional().describe('default: now'),
    to: when.optional().describe('default: a year from now'),
    max_results: rows(100, 20),
  }),
  execute: async (_, { signal }) => await call('events', { signal }),
});
const createTask = defineTool({
  name: 'create_task',
  description: 'Creates a task. Returns it with its id.',
  effect: 'keyed',
  input: z.object({
    title: z.string(),
    due: z.iso.date().optional().describe('the day by which it has to be done'),
    notes: z.string().default(''),
    tasklist,
  }),
  describe: ({ title, due }) => `create task "${title}"${due === undefined ? '' : ` due ${due}`}`,
  execute: async ({ title, due = null }, { idempotencyKey: key, signal }) =>
    await call('tasks', { method: 'POST', body: { title, due }, key, signal }),
});
const listTasks = defineTool({
  name: 'list_tasks',
  description: 'Lists the tasks.',
  effect: 'read',
  input: z.object({
    tasklist,
    show_completed: z.boolean().default(false),
    max_results: rows(100, 20),
  }),
  execute: async (_, { signal }) => await call('tasks', { signal }),
});
const listUnread = defineTool({
  name: 'list_unread_emails',
  description: 'Lists the emails that have not been read.',
  effect: 'read',
  input: z.object({ max_results: rows(50, 10) }),
  execute: async (_, { signal }) => await call('mails', { signal }),
});

/** A tool that has only a schema: it reports that nothing is connected. */
function schemaOnly(name: string, description: string, input: z.ZodObject, isRead = false): Tool {
  return defineTool({
    name,
    description,
    effect: isRead ? 'read' : 'keyed',
    input,
    execute: () => ({ success: false, error: `${name} is not connected in this example` }),
  });
}

const id = z.object({
  task_id: z.string().describe('as list_tasks gives it'),
  tasklist,
});
const days = z.object({
  days: z.int().min(1).max(30).default(7).describe('how many days back'),
  max_results: rows(100, 20),
});
const search = z.object({
  query: z.string().describe('words, or a sender as from:ann@example.com'),
  max_results: rows(50, 10),
});

export const tools: readonly Tool[] = [
  addEvent,
  deleteEvent,
  listEvents,
  createTask,
  listTasks,
  listUnread,
  schemaOnly('search_calendar_events', 'Finds events of the next 30 days.', search, true),
  schemaOnly(
    'update_calendar_event',
    'Changes an event.',
    z.object({
      event_id: z.string().describe('as list_calendar_events gives it'),
      title: z.string().optional(),
      start: when.optional(),
      end: when.optional(),
      description: z.string().optional(),
    }),
  ),
  schemaOnly('mark_task_complete', 'Marks a task as complete.', id),
  schemaOnly('mark_task_incomplete', 'Marks a task as not complete.', id),
  schemaOnly('delete_task', 'Deletes a task.', id),
  schemaOnly(
    'update_task',
    'Changes a task.',
    id.extend({
      title: z.string().optional(),
      due: z.iso.date().optional(),
      notes: z.string().optional(),
    }),
  ),
  schemaOnly('get_task_lists', 'Lists the lists of tasks.', z.object({}), true),
  schemaOnly('read_emails', 'Reads emails.', search, true),
  schemaOnly(
    'get_email_details',
    'Reads one email.',
    z.object({ email_id: z.string().describe('as a list of emails gives it') }),
    true,
  ),
  schemaOnly('summarize_weekly_emails', 'Sums up the emails of some days.', days, true),
  schemaOnly('search_emails', 'Finds emails.', search, true),
];
