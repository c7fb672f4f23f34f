/** Where runs of this configuration are worked on. */
export function resolveTaskQueue(
  config: { readonly taskQueue?: string },
  env: Readonly<Record<string, string | undefined>>,
): string {
  return config.taskQueue ?? env['PERDURE_TASK_QUEUE'] ?? 'perdure';
}
