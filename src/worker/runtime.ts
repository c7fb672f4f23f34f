import {
  DefaultLogger,
  LogTimestamp,
  makeTelemetryFilterString,
  Runtime,
  type LogEntry,
  type LogLevel,
} from '@temporalio/worker';
import { redactFields } from '../secrets/redact-log.js';
import { redactMessage } from '../secrets/redact.js';

/**
 * Sets what Temporal's SDK logs to stderr, for this whole process; the first call wins, as the SDK
 * has one runtime. Programs call it, libraries must not. `write` puts an entry somewhere else. Secrets of
 * the process are redacted in all entries.
 */
export function installRuntime(level: LogLevel = 'WARN', write?: (entry: LogEntry) => void): void {
  // A logger of the SDK's own, for how it writes entries to stderr.
  const logger = new DefaultLogger(level, write);
  try {
    Runtime.install({
      logger: new DefaultLogger(level, ({ message, meta, level: severity, timestampNanos }) => {
        const fields = { ...(meta && redactFields(meta)), [LogTimestamp]: timestampNanos };
        logger.log(severity, redactMessage(message), fields);
      }),
      telemetryOptions: {
        logging: {
          filter: makeTelemetryFilterString({ core: level, other: 'ERROR' }),
          forward: {},
        },
      },
    });
  } catch {
    // Somebody has installed one already; theirs holds.
  }
}
