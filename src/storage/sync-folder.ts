import { open } from 'node:fs/promises';

/** Makes new names in a folder durable; not every file system supports this. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined);
  try {
    await handle?.sync();
  } catch {
    return;
  } finally {
    await handle?.close();
  }
}
