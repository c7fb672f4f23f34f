import { Connection } from '@temporalio/client';
import { CHANNEL_OPTIONS } from '../../src/temporal/grpc.js';

let isSet = false;

/** Gives each connection of this process, also that of a test, the options of perdure's own. */
export function shareChannelOptions(): void {
  if (isSet) return;
  isSet = true;
  const lazy = Connection.lazy.bind(Connection);
  Connection.lazy = (options) => lazy({ ...CHANNEL_OPTIONS, ...options });
}
