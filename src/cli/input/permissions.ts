import type { FilePermissions } from '../../agents/files-agent.js';
import type { GlobalOptions } from '../context.js';

/** Returns what the options allow the built-in agent; empty for the default, which is reading. */
export function permissionsOf(options: GlobalOptions): FilePermissions {
  const { write = false, allowWrite, allowRead } = options;
  return {
    ...((write || allowWrite) && { write: true }),
    ...(allowWrite && { allowWrite }),
    ...(allowRead && { allowRead }),
  };
}

/** Returns the same permissions as flags for another command. */
export function permissionFlags(options: GlobalOptions): readonly string[] {
  const { write = false, allowWrite = [], allowRead = [] } = options;
  return [
    ...(write ? ['--write'] : []),
    ...allowWrite.flatMap((pattern) => ['--allow-write', pattern]),
    ...allowRead.flatMap((pattern) => ['--allow-read', pattern]),
  ];
}
