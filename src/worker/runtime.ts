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
 * Sets from which level on Temporal's SDK logs to stderr, or to `write`, with secrets redacted. The SDK
 * has one runtime per process, so only the first call has an effect. For programs; a library must not
 * call it.
 */
export function installRuntime(level: LogLevel = 'WARN', write?: (entry: LogEntry) => void): void {
  // The SDK's own logger formats the entries.
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
    // The process has a runtime already, which stays.
  }
}
