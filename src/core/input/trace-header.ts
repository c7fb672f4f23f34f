/**
 * The header with the trace that a run is a part of, in the form of Temporal's interceptors for
 * OpenTelemetry: a map of texts, as propagators write it.
 */
export const TRACE_HEADER = '_tracer-data';

/** Work below a span of the same run: its place in the tree of spans. */
export interface SpanPlace {
  /** The span above, as W3C writes it (`traceparent`); absent if nothing is traced. */
  readonly span?: string;
}

/** Returns whether a value is a `traceparent`, of 55 characters. */
export function isTraceparent(value: unknown): value is string {
  return (
    typeof value === 'string' && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(value)
  );
}
