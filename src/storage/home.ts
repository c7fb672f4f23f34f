/** Returns PERDURE_HOME, the folder of the server's database, the blobs, and the archive. */
export function perdureHome(env: Readonly<Record<string, string | undefined>>): string {
  return env['PERDURE_HOME'] ?? '.perdure';
}
