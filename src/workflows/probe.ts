/** Workflow type `probe`: ends at once. Its end shows that a worker polls the task queue. */
export async function probe(): Promise<string> {
  return 'alive';
}
