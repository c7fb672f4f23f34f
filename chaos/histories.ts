import type { Client, WorkflowHandle } from '@temporalio/client';

export type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
export type HistoryEvent = NonNullable<History['events']>[number];

/** The histories of all segments of a run, oldest first. */
export async function historiesOf(client: Client, id: string): Promise<readonly History[]> {
  const histories: History[] = [];
  let runId: string | null | undefined = (await client.workflow.getHandle(id).describe()).runId;
  while (runId !== undefined && runId !== null && runId !== '') {
    const history: History = await client.workflow.getHandle(id, runId).fetchHistory();
    histories.unshift(history);
    runId =
      history.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? '';
  }
  return histories;
}

/** Unix time in ms at which the server recorded an event. */
export function timeOf({ eventTime }: HistoryEvent): number {
  return Number(eventTime?.seconds ?? 0) * 1_000 + (eventTime?.nanos ?? 0) / 1e6;
}

/** Everything that a history contains, with decoded payloads, as one searchable text. */
export function plainText(value: unknown): string {
  // `toJSON` is not used, since it writes payloads in base64.
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (typeof value === 'object' && value !== null) {
    return Object.values(value).map(plainText).join('\n');
  }
  return String(value);
}
