export {
  callTool,
  callTools,
  say,
  scriptedModel,
  type ScriptedModel,
  type ScriptedReply,
  type ScriptStep,
} from './models/scripted.js';
export {
  toolContext,
  type TestToolContext,
  type ToolContextOptions,
} from './testing/tool-context.js';
export { startStub, type Stub, type StubDemand, type StubOptions } from './testing/stub-server.js';
export {
  reply,
  type CompletionOptions,
  type CutHow,
  type Delivery,
  type SseOptions,
  type Step,
  type StubCall,
  type StubToken,
} from './testing/steps.js';
export type { Barrier } from './testing/barrier.js';
export type { RequestEnd, StubMessage, StubRequest } from './testing/requests.js';
export type { Answer } from './testing/script.js';
