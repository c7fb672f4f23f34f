import { utf8ToBytes } from '@noble/hashes/utils.js';
import type { RunArtifact } from '../transcript/messages.js';
import { formatBytes } from '../text/summaries.js';

/** The maximum number of artifacts in a list for the model. */
const MAX_LISTED = 100;

/**
 * Returns the text that describes a tool's artifact to the model. `wanted` is the name that the
 * tool chose; `head` is the beginning of the value.
 */
export function artifactText(artifact: RunArtifact, wanted: string, head: string): string {
  const { name, kind, blob, summary } = artifact;
  const renamed = name === wanted ? '' : ` ("${wanted}" already names another value)`;
  const whole = utf8ToBytes(head).length >= blob.bytes;
  return [
    `[artifact "${name}"${renamed}: ${kind}, ${blob.bytes} bytes. The whole value is stored: pass ` +
      `it to a tool by this name, or read it with read_result({"ref":"${blob.sha256}","offset":0})]`,
    ...(summary === undefined ? [] : [summary]),
    whole ? 'The value:' : 'The value begins:',
    head,
  ].join('\n');
}

/** Returns the text that announces to the model an artifact of the next message. */
export function attachedArtifactText(
  { name, kind, blob }: Pick<RunArtifact, 'name' | 'kind' | 'blob'>,
  wanted: string,
  head: string,
): string {
  const renamed = name === wanted ? '' : ` ("${wanted}" already names another value)`;
  return [
    `[artifact "${name}"${renamed}: ${kind}. It is sent with the next message, and the whole value is ` +
      `stored: pass it to a tool by this name, or read it with read_result({"ref":"${blob.sha256}","offset":0})]`,
    'The value begins:',
    head,
  ].join('\n');
}

/** Returns the list of a run's artifacts for its model, newest first. */
export function artifactList(artifacts: readonly RunArtifact[]): string {
  if (artifacts.length === 0) return 'There are no artifacts yet.';
  const shown = artifacts.slice(-MAX_LISTED).toReversed();
  const left = artifacts.length - shown.length;
  return [
    `${artifacts.length} artifact${artifacts.length === 1 ? '' : 's'}, newest first:`,
    ...shown.map((artifact) => `- ${line(artifact)}`),
    ...(left === 0 ? [] : [`and ${left} older`]),
  ].join('\n');
}

function line({ name, kind, blob, announcedBy, tool, call, summary }: RunArtifact): string {
  const origin = announcedBy === undefined ? `made by ${tool} (${call})` : 'sent with a message';
  const what = `${name}: ${kind}, ${formatBytes(blob.bytes)}, ${origin}`;
  return summary === undefined ? what : `${what}: ${summary}`;
}
