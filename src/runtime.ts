import {
  DefaultLogger,
  makeTelemetryFilterString,
  Runtime,
  type LogEntry,
  type LogLevel,
} from '@temporalio/worker';

/**
 * Sets what Temporal's SDK logs to stderr, for this whole process; the first call wins, as the SDK
 * has one runtime. Programs call it, libraries must not. `write` puts an entry somewhere else.
 */
export function installRuntime(level: LogLevel = 'WARN', write?: (entry: LogEntry) => void): void {
  try {
    Runtime.install({
      logger: new DefaultLogger(level, write),
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
