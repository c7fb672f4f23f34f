/** Ends at once: who starts it learns within a workflow task whether a worker is alive on the queue. */
export async function probe(): Promise<string> {
  return 'alive';
}
