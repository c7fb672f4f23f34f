import { open } from 'node:fs/promises';

/** Makes a new name in a folder durable; not every file system offers that for folders. */
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
