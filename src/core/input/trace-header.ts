/**
 * The header with a run's trace, in the form of Temporal's OpenTelemetry interceptors: a map of
 * strings, as propagators write it.
 */
export const TRACE_HEADER = '_tracer-data';

/** The place in the tree of spans of work below a span of the same run. */
export interface SpanPlace {
  /** The parent span as a W3C `traceparent`; absent if nothing is traced. */
  readonly span?: string;
}

/** Returns whether a value is a `traceparent`, of 55 characters. */
export function isTraceparent(value: unknown): value is string {
  return (
    typeof value === 'string' && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(value)
  );
}
