import { DefaultLogger, Runtime, type LogEntry } from '@temporalio/worker';
import { expect, test } from 'vitest';
import { setLogger } from '../../src/temporal/sdk-internals.js';
import { guardLog } from '../../src/worker/log.js';

test('the log has no warnings about probes, whose answers nobody needs, and commands that can be pasted', () => {
  const runtime = Runtime.instance();
  const { logger } = runtime;
  const { defaultOptions } = Runtime;
  const logged: LogEntry[] = [];
  setLogger(runtime, new DefaultLogger('WARN', (entry) => logged.push(entry)));
  // As in a program whose own runtime the SDK made.
  Reflect.set(Runtime, 'defaultOptions', {});
  try {
    guardLog();
    const warn = (workflowId: string) =>
      runtime.logger.warn('Task not found when completing', { workflowId });
    warn('perdure-probe-1');
    warn('run-1');
    runtime.logger.error('broken', { workflowId: 'perdure-probe-1' });
    runtime.logger.warn('accept it with: perdure mcp accept shop lookup');
  } finally {
    setLogger(runtime, logger);
    Reflect.set(Runtime, 'defaultOptions', defaultOptions);
  }
  expect(logged.map(({ message, meta }) => [message, meta?.['workflowId']])).toEqual([
    ['Task not found when completing', 'run-1'],
    ['broken', 'perdure-probe-1'],
    // A program that hosts a worker has the command in its project.
    ['accept it with: npx perdure mcp accept shop lookup', undefined],
  ]);
});
