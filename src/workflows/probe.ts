/**
 * Workflow type `probe`: ends at once. Its end shows that a worker polls the task queue.
 *
 * @example
 * ```ts
 * // The workflows file of your own worker: commands then see whether a worker is there.
 * export { agent, probe } from 'perdure/workflow';
 * ```
 */
export async function probe(): Promise<string> {
  return 'alive';
}
