/**
 * The header with the trace that a run is a part of, in the form of Temporal's interceptors for
 * OpenTelemetry: a map of texts, as propagators write it.
 */
export const TRACE_HEADER = '_tracer-data';
