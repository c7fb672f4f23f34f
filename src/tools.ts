// Tools
export { fileTools, type FileToolsOptions } from './tools/files/file-tools.js';
export { today } from './tools/built-in/today.js';
export { askPerson, type AskPersonOptions } from './tools/built-in/ask-person.js';
export { wait } from './tools/built-in/wait.js';
export { answer, type AnswerOptions } from './tools/built-in/answer.js';
export { listArtifacts } from './tools/built-in/list-artifacts.js';
export { returnArtifact } from './tools/built-in/return-artifact.js';
export { defaultTools } from './tools/built-in/default-tools.js';

// Special results of tools
export { artifact, type ArtifactOptions, type ArtifactResult } from './tools/built-in/artifact.js';
export { screenshot, type Screenshot } from './tools/built-in/screenshot.js';
