/**
 * The private parts of Temporal's SDK that perdure uses, in one place. They are not part of the SDK's API, so
 * a new version may move or change them: after an update of the SDK, this is the file to check.
 * `test/walls.test.ts` refuses any other import from the `lib` folders of the SDK.
 */
import { createRequire } from 'node:module';

/** Entries of lists are read raw: one memo that cannot be decoded makes the SDK reject the whole list. */
export { executionInfoFromRaw } from '@temporalio/client/lib/helpers.js';
/** The update of the schedule client writes no headers, so an update is encoded here. */
export {
  encodeScheduleAction,
  encodeSchedulePolicies,
  encodeScheduleSpec,
} from '@temporalio/client/lib/schedule-helpers.js';
/** Payloads in raw answers of the server, through the client's codecs and external storage. */
export {
  decode as decodePayloads,
  decodeArrayFromPayloads,
  decodeMapFromPayloads,
  encodeMapToPayloads,
  extstoreInboundOptions,
  visit,
  walkDescribeWorkflowExecutionResponse,
  walkGetWorkflowExecutionHistoryResponse,
  walkListSchedulesResponse,
  walkListWorkflowExecutionsResponse,
} from '@temporalio/common/lib/internal-non-workflow/index.js';
/** Times in raw requests and answers. */
export { msToTs, optionalTsToMs } from '@temporalio/common/lib/time.js';

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

/** The message type of a history, and how messages become JSON. */
export interface HistoryProto {
  readonly protoJson: ProtoJson;
  readonly type: MessageType;
}

let loaded: HistoryProto | undefined;

/**
 * Loads protobufjs and the message types from one copy. The SDK's own functions mix two copies if npm
 * has installed several, as in a new project, and then fail with `type must be a Type`.
 */
export function historyProto(): HistoryProto {
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
