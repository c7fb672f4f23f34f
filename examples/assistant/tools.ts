// Six tools that work, and eleven that a real assistant would have.
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
  if (response.status === 404) return { success: false, error: `there is no ${path}` };
  if (!response.ok) throw new Error(`the service answered ${response.status}`);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- our own service
  return (await response.json()) as object;
}

const when = z.iso.datetime({ local: true });

const addEvent = defineTool({
  name: 'add_calendar_event',
  description: 'Adds an event to the calendar. Returns it with its id.',
  effect: 'keyed',
  input: z.object({ title: z.string(), start: when }),
  describe: ({ title, start }) => `add "${title}" on ${start}`,
  execute: async (event, { idempotencyKey: key, signal }) =>
    await call('events', { method: 'POST', body: event, key, signal }),
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
  description: 'Lists the events of the calendar.',
  effect: 'read',
  input: z.object({}),
  execute: async (_, { signal }) => await call('events', { signal }),
});
const createTask = defineTool({
  name: 'create_task',
  description: 'Creates a task. Returns it with its id.',
  effect: 'keyed',
  input: z.object({ title: z.string(), due: z.iso.date().optional() }),
  describe: ({ title, due }) => `create task "${title}"${due === undefined ? '' : ` due ${due}`}`,
  execute: async (task, { idempotencyKey: key, signal }) =>
    await call('tasks', { method: 'POST', body: task, key, signal }),
});
const listTasks = defineTool({
  name: 'list_tasks',
  description: 'Lists the tasks.',
  effect: 'read',
  input: z.object({}),
  execute: async (_, { signal }) => await call('tasks', { signal }),
});
const listUnread = defineTool({
  name: 'list_unread_emails',
  description: 'Lists the emails that have not been read.',
  effect: 'read',
  input: z.object({}),
  execute: async (_, { signal }) => await call('mails', { signal }),
});

/** A tool of which only the schema exists: it says that nothing is connected. */
function schemaOnly(name: string, description: string, input: z.ZodObject, isRead = false): Tool {
  return defineTool({
    name,
    description,
    effect: isRead ? 'read' : 'keyed',
    input,
    execute: () => ({ success: false, error: `${name} is not connected in this example` }),
  });
}

const id = z.object({ task_id: z.string() });
const days = z.object({ days: z.int().min(1).max(30).default(7) });
const search = z.object({ query: z.string(), max_results: z.int().min(1).max(50).default(10) });

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
    z.object({ event_id: z.string(), title: z.string().optional(), start: when.optional() }),
  ),
  schemaOnly('mark_task_complete', 'Marks a task as complete.', id),
  schemaOnly('mark_task_incomplete', 'Marks a task as not complete.', id),
  schemaOnly('delete_task', 'Deletes a task.', id),
  schemaOnly('update_task', 'Changes a task.', id.extend({ title: z.string() })),
  schemaOnly('get_task_lists', 'Lists the lists of tasks.', z.object({}), true),
  schemaOnly('read_emails', 'Reads emails.', search, true),
  schemaOnly('get_email_details', 'Reads one email.', z.object({ email_id: z.string() }), true),
  schemaOnly('summarize_weekly_emails', 'Sums up the emails of some days.', days, true),
  schemaOnly('search_emails', 'Finds emails.', search, true),
];
