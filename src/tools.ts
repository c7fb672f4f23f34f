// Tools
export { fileTools, type FileToolsOptions } from './tools/files/file-tools.js';
export {
  today,
  answer,
  type AnswerOptions,
  listArtifacts,
  returnArtifact,
  defaultTools,
} from './tools/built-in/default-tools.js';
export { askPerson, type AskPersonOptions, wait } from './tools/built-in/workflow-tools.js';
// Special results of tools
export {
  artifact,
  type ArtifactOptions,
  type ArtifactResult,
  screenshot,
  type Screenshot,
} from './tools/built-in/artifact.js';
