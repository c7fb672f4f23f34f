/** PERDURE_HOME: server database, blobs, archive. */
export function homeOf(env: Readonly<Record<string, string | undefined>>): string {
  return env['PERDURE_HOME'] ?? '.perdure';
}
