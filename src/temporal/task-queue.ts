/** Returns the task queue of a configuration; default PERDURE_TASK_QUEUE, else `perdure`. */
export function resolveTaskQueue(
  config: { readonly taskQueue?: string },
  env: Readonly<Record<string, string | undefined>>,
): string {
  return config.taskQueue ?? env['PERDURE_TASK_QUEUE'] ?? 'perdure';
}
