export { fileTools, type FileToolsOptions } from './tools/files/file-tools.js';
export { today } from './tools/built-in/today.js';
export { wait } from './tools/built-in/wait.js';
export { artifact, type Artifact, type ArtifactOptions } from './tools/built-in/artifact.js';
export { screenshot, type Screenshot } from './tools/built-in/screenshot.js';
export { answer, type AnswerOptions } from './tools/built-in/answer.js';
export { listArtifacts } from './tools/built-in/list-artifacts.js';
export { returnArtifact } from './tools/built-in/return-artifact.js';
export { defaultTools } from './tools/built-in/default-tools.js';
