import { historyProto } from '../temporal/sdk-internals.js';
import type { History } from './history-event.js';

// A newer server or SDK may have written fields that this version does not know.
const READ_OPTIONS = { ignoreUnknownFields: true };

/**
 * Parses a history as `historyToJson` and Temporal's tools write it. Throws if it is not a history.
 */
export function historyFromJson(json: { readonly events: readonly unknown[] }): History {
  const { protoJson, type } = historyProto();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that is what `type` describes
  return protoJson.fromJson(type, json, READ_OPTIONS) as History;
}

/** Writes a history as JSON text that Temporal's tools can read. */
export function historyToJson(history: History): string {
  const { protoJson, type } = historyProto();
  return JSON.stringify(protoJson.toJson(type, type.fromObject(history)), null, 2);
}
