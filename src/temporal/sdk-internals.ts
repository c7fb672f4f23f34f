/**
 * The private parts of Temporal's SDK that perdure uses, in one place. They are not part of the SDK's API, so
 * a new version may move or change them: after an update of the SDK, this is the file to check.
 * `test/walls.test.ts` refuses any other import from the `lib` folders of the SDK.
 */
import { createRequire } from 'node:module';
import { Script } from 'node:vm';
import type { Logger, Payload } from '@temporalio/common';
import type { Runtime } from '@temporalio/worker';
import type { Activity } from '@temporalio/worker/lib/activity.js';
import type {
  Workflow,
  WorkflowCreateOptions,
  WorkflowCreator,
} from '@temporalio/worker/lib/workflow/interface.js';

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
  encode as encodePayloads,
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

/** A workflow in the SDK's runtime: it turns activations into commands. */
export type { Workflow, WorkflowCreateOptions, WorkflowCreator };
/** One attempt at an activity in the SDK's runtime, with its context. */
export type ActivityAttempt = Activity;
/** What a worker sends to a workflow, and what the workflow answers. */
export type Activation = Parameters<Workflow['activate']>[0];
export type ActivationJob = NonNullable<Activation['jobs']>[number];
type Completion = Awaited<ReturnType<Workflow['activate']>>;
export type WorkflowCommand = NonNullable<
  NonNullable<Completion['successful']>['commands']
>[number];
export type ActivityResult = Awaited<ReturnType<Activity['run']>>;
/** A 64-bit integer in messages. */
export type Int64 = NonNullable<Activation['historySizeBytes']>;

/** The message type of a history, and how messages become JSON. */
interface HistoryProto {
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

/** The private static and instance parts of the SDK's workflow runtime. */
interface CreatorClass {
  unhandledRejectionHandlerHasBeenSet: boolean;
  new (
    script: Script,
    bundle: { readonly code: string; readonly sourceMap: object; readonly filename: string },
    timeoutMs: number | undefined,
    activityNames: ReadonlySet<string>,
  ): WorkflowCreator;
}

/** The parts of a worker below which there is neither Rust core nor a server. */
interface WorkerRuntime {
  /** Creates the V8 context in which workflows of this bundle run. */
  readonly createWorkflows: (
    code: string,
    filename: string,
    activityNames: ReadonlySet<string>,
  ) => WorkflowCreator;
  readonly Activity: typeof Activity;
  /** Makes a message of an activation with queries; the SDK itself makes the others. */
  readonly toActivation: (activation: Activation) => Activation;
  readonly toInt64: (value: number) => Int64;
  /** The numbers of the event types, by name. */
  readonly eventTypes: Readonly<Record<string, number>>;
}

let payloadType: PayloadType | undefined;

/** Loads the message type of a payload, as Temporal's codecs in all languages encode it. */
export function payloadProto(): PayloadType {
  if (payloadType !== undefined) return payloadType;
  const ours = createRequire(import.meta.url);
  const common = createRequire(ours.resolve('@temporalio/common'));
  const { temporal }: ProtoRoot = common('@temporalio/proto');
  payloadType = temporal.api.common.v1.Payload;
  return payloadType;
}

let runtime: WorkerRuntime | undefined;

/**
 * Loads the SDK's workflow runtime and its activity execution into this thread. The hooks that it would install
 * in the whole process are left out: one for each promise, one for stack traces, and one that ends
 * the process at an unhandled rejection. The module is loaded on demand, because it loads the SDK's native
 * library.
 */
export function workerRuntime(): WorkerRuntime {
  if (runtime !== undefined) return runtime;
  const ours = createRequire(import.meta.url);
  const worker = createRequire(ours.resolve('@temporalio/worker'));
  const common = createRequire(ours.resolve('@temporalio/common'));
  const { ReusableVMWorkflowCreator: Creator }: { ReusableVMWorkflowCreator: CreatorClass } =
    worker('@temporalio/worker/lib/workflow/reusable-vm');
  const { Activity: Attempt }: { Activity: typeof Activity } = worker(
    '@temporalio/worker/lib/activity',
  );
  const Long: { fromNumber: WorkerRuntime['toInt64'] } = common('long');
  const { temporal, coresdk }: ProtoRoot = common('@temporalio/proto');
  Creator.unhandledRejectionHandlerHasBeenSet = true;
  runtime = {
    createWorkflows: (code, filename, activityNames) =>
      new Creator(
        new Script(code, { filename }),
        { code, sourceMap: {}, filename },
        undefined,
        activityNames,
      ),
    Activity: Attempt,
    toActivation: (activation) =>
      coresdk.workflow_activation.WorkflowActivation.fromObject(activation),
    toInt64: (value) => Long.fromNumber(value),
    eventTypes: temporal.api.enums.v1.EventType,
  };
  return runtime;
}

/**
 * Replaces the logger of a runtime, which the SDK's type marks as readonly. Workers take it over when they
 * are created.
 */
export function setLogger(owner: Runtime, logger: Logger): void {
  const { logger: before } = owner;
  // The SDK calls them of a logger that collects entries before it writes them.
  const ends = ['flush', 'close'].flatMap((name) => {
    const end: unknown = Reflect.get(before, name);
    return typeof end === 'function' ? [[name, end.bind(before)] as const] : [];
  });
  Reflect.set(owner, 'logger', Object.assign(logger, Object.fromEntries(ends)));
}

/** Encodes a payload as bytes, and decodes it. */
interface PayloadType {
  readonly encode: (payload: Payload) => { readonly finish: () => Uint8Array };
  readonly decode: (bytes: Uint8Array) => Payload;
}

interface ProtoRoot {
  readonly coresdk: {
    readonly workflow_activation: {
      readonly WorkflowActivation: { readonly fromObject: (value: Activation) => Activation };
    };
  };
  readonly temporal: {
    readonly api: {
      readonly common: { readonly v1: { readonly Payload: PayloadType } };
      readonly enums: { readonly v1: { readonly EventType: Readonly<Record<string, number>> } };
    };
  };
}
