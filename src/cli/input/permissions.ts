import type { FilePermissions } from '../../agents/files-agent.js';
import type { GlobalOptions } from '../context.js';

/** What the options permit the built-in agent; empty when they permit nothing beyond the default. */
export function permissionsOf(options: GlobalOptions): FilePermissions {
  const { write = false, allowWrite, allowRead } = options;
  return {
    ...((write || allowWrite) && { write: true }),
    ...(allowWrite && { allowWrite }),
    ...(allowRead && { allowRead }),
  };
}

/** The same as flags of another command. */
export function permissionFlags(options: GlobalOptions): readonly string[] {
  const { write = false, allowWrite = [], allowRead = [] } = options;
  return [
    ...(write ? ['--write'] : []),
    ...allowWrite.flatMap((pattern) => ['--allow-write', pattern]),
    ...allowRead.flatMap((pattern) => ['--allow-read', pattern]),
  ];
}
