import {
  DefaultLogger,
  LogTimestamp,
  makeTelemetryFilterString,
  Runtime,
  type LogEntry,
  type LogLevel,
  type RuntimeOptions,
} from '@temporalio/worker';
import { redactFields } from '../secrets/redact-log.js';
import { redactMessage } from '../secrets/redact.js';

/**
 * Sets the minimum level at which Temporal's SDK logs to stderr, or to `write`, with secrets
 * redacted. The SDK has one runtime per process, so only the first call has an effect. Only a
 * program may call it, not a library.
 */
export function installRuntime(level: LogLevel = 'WARN', write?: (entry: LogEntry) => void): void {
  try {
    installRuntimeOf({
      // The SDK's own logger formats the entries.
      logger: new DefaultLogger(level, write),
      telemetryOptions: {
        logging: {
          filter: makeTelemetryFilterString({ core: level, other: 'ERROR' }),
          forward: {},
        },
      },
    });
  } catch {
    // The process already has a runtime, which stays.
  }
}

/**
 * Installs the SDK's runtime with these options; its logger receives no secrets. Throws the SDK's
 * error if the process has a runtime already.
 */
export function installRuntimeOf({ logger = new DefaultLogger(), ...rest }: RuntimeOptions): void {
  // The SDK logs each activity at `DEBUG`: entries that the logger would drop are not redacted.
  const level = logger instanceof DefaultLogger ? logger.level : 'TRACE';
  const redacting = new DefaultLogger(level, ({ message, meta, level: given, timestampNanos }) => {
    const fields = { ...(meta && redactFields(meta)), [LogTimestamp]: timestampNanos };
    logger.log(given, redactMessage(message), fields);
  });
  Runtime.install({ ...rest, logger: redacting });
}
