import { createRequire } from 'node:module';
import type { History } from './history-event.js';

/** The parts of the SDK's dependencies that are used here; they have no types of their own. */
interface ProtoJson {
  readonly fromJson: (type: object, json: object, options: object) => unknown;
  readonly toJson: (type: object, message: unknown) => unknown;
}
interface Patch {
  readonly patchProtobufRoot: (root: object) => { lookupType(name: string): MessageType };
}
interface MessageType {
  readonly fromObject: (value: object) => unknown;
}

// A newer server or SDK may have written fields that this version does not know.
const READ_OPTIONS = { ignoreUnknownFields: true };

/** Parses a history as `historyToJson` and Temporal's tools write it. Throws if it is not a history. */
export function historyFromJson(json: { readonly events: readonly unknown[] }): History {
  const { protoJson, type } = proto();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that is what `type` describes
  return protoJson.fromJson(type, json, READ_OPTIONS) as History;
}

/** Writes a history as JSON text that Temporal's tools can read. */
export function historyToJson(history: History): string {
  const { protoJson, type } = proto();
  return JSON.stringify(protoJson.toJson(type, type.fromObject(history)), null, 2);
}

let loaded: { readonly protoJson: ProtoJson; readonly type: MessageType } | undefined;

/**
 * Loads protobufjs and the message types from one copy. The SDK's own functions mix two copies if npm
 * has installed several, as in a new project, and then fail with `type must be a Type`.
 */
function proto(): NonNullable<typeof loaded> {
  if (loaded !== undefined) return loaded;
  const ours = createRequire(import.meta.url);
  const common = createRequire(ours.resolve('@temporalio/common'));
  const theirs = createRequire(common.resolve('@temporalio/proto'));
  const root: object = theirs('@temporalio/proto');
  const patch: Patch = theirs('@temporalio/proto/lib/patch-protobuf-root');
  const protoJson: ProtoJson = theirs('protobufjs/ext/protojson');
  const type = patch.patchProtobufRoot(root).lookupType('temporal.api.history.v1.History');
  loaded = { protoJson, type };
  return loaded;
}
