import { parseNumber, collectValues } from './option-parsers.js';

/** Options that several commands accept, as arguments of commander's `option`. */
/** Selects a prompt of the agent. */
export const PROMPT = [
  '--prompt <name>',
  'the name of a prompt of the agent, instead of a message',
] as const;
/** An argument of a template or of a prompt. */
export const ARG = [
  '--arg <name=value>',
  "an argument of the agent's template or of --prompt, or name:=json; may be repeated",
] as const;

export const SETTING = [
  '--setting <name=value>',
  'a setting of the model for this turn, such as temperature=0.2; may be repeated',
] as const;

export const ID = [
  '--id <id>',
  'workflow id of the new run; default: the agent, the date, and a random suffix',
] as const;
export const OPEN = ['--open', 'keep the run open for more messages; see send and close'] as const;
export const NO_WAIT = [
  '--no-wait',
  'exit when the run waits for a person (exit code 3) or is blocked (4)',
] as const;
export const MODEL_ATTEMPTS = [
  '--model-attempts <n>',
  'failed attempts of a model call, 1 to 10, after which the turn fails; default: wait for the model',
  parseNumber,
] as const;
export const UI = [
  '--ui',
  'on a terminal: keep the Temporal UI up until a key is pressed',
] as const;
export const ATTACH = [
  '--attach <file|url>',
  'an image or a PDF, or the URL of an image; may be repeated',
  collectValues,
] as const;
export const ARTIFACT = [
  '--artifact <name=file>',
  'a file whose content becomes an artifact of the run: JSON if it is named .json, else text; may be repeated',
  collectValues,
] as const;
export const LIVE_PORT = [
  '--live-port <n>',
  'port of the live stream of replies; default: a free port',
  parseNumber,
] as const;
export const LIVE_HOST = [
  '--live-host <host>',
  'address of the live stream; any but 127.0.0.1 needs PERDURE_LIVE_TOKEN',
] as const;
/** Options of the commands that decide about a request. */
export const DIGEST = [
  '--digest <hex>',
  'the digest of the request that you have read, as shown; its first 12 digits or more',
] as const;
export const BY = [
  '--by <name>',
  'name of the person who decides: recorded, not verified; default: the OS user',
] as const;
